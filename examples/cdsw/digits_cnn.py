"""A small convolutional network on handwritten digits with Keras, after Keras' cifar10_cnn: python digits_cnn.py

It trains with images that are shifted at random, saves the model and its logs, and reports how many held-out digits it reads. CUDA_VISIBLE_DEVICES=-1
in the session's environment (Project Settings > Engine) leaves GPUs alone.
"""

from __future__ import absolute_import, division, print_function

import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import digits
import numpy as np

try:
    import keras
except ImportError:
    from tensorflow import keras

EPOCHS = int(os.environ.get("EPOCHS", "12"))
BATCH = 32


def network():
    layers = keras.layers
    return keras.models.Sequential(
        [
            layers.Conv2D(32, 3, padding="same", activation="relu", input_shape=(8, 8, 1)),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.25),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(digits.CLASSES, activation="softmax"),
        ]
    )


def images(rows):
    pixels, answers = digits.arrays(rows)
    return pixels.reshape(-1, 8, 8, 1), answers


def shifted(pixels, answers, random):
    """Batches without end, each image moved by at most one pixel."""
    while True:
        indices = random.randint(0, len(pixels), BATCH)
        moved = [np.roll(pixels[index], random.randint(-1, 2, 2), axis=(0, 1)) for index in indices]
        yield np.array(moved), answers[indices]


def logs():
    """Logs for TensorBoard, if this Keras can write them; some require a package that the stack lacks."""
    try:
        return [keras.callbacks.TensorBoard(log_dir=os.path.join("logs", "cnn"))]
    except ImportError as error:
        print("No logs for TensorBoard: %s" % error)
        return []


def main():
    begin = time.time()
    training, held_out = digits.split(digits.lines())
    pixels, answers = images(training)
    model = network()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    batches = shifted(pixels, answers, np.random.RandomState(7))
    fit = getattr(model, "fit_generator", model.fit)  # Keras before 2.4 takes a generator there only
    fit(batches, steps_per_epoch=len(pixels) // BATCH, epochs=EPOCHS, callbacks=logs(), verbose=2)
    model.save("digits_cnn.keras" if keras.__version__.startswith("3") else "digits_cnn.h5")
    accuracy = model.evaluate(*images(held_out), verbose=0)[1]
    print("RESULT " + digits.result(accuracy, len(held_out), time.time() - begin, 1, ["here"]))
    return 0 if accuracy >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
