"""The networks that benchmark.py trains, on made data: those of the Fujitsu white paper (PRIMEFLEX for Hadoop, page 9), as Keras' examples have them.

Runs in the Python of an environment, in a process for each measurement: it imports TensorFlow.
Shapes and batch sizes: cifar10_resnet.py, imdb_cnn.py, imdb_lstm.py, imdb_cnn_lstm.py, cifar10_cnn.py of keras-team/keras 2.1.2; AlexNet: Krizhevsky
et al., 2012, with batch normalization left out. The synthetic images have the size that the paper names, 128x128.
"""

from __future__ import absolute_import, division, print_function

import json
import resource
import time

WARM_UP = 2  # batches of each size: they build the graph, choose algorithms, and allocate memory
LEAST = 5  # batches that are measured
TRIED = 2  # batches at least by which a size is tried, for a tenth of the seconds
GROWTH = 1.1  # a batch twice as large must train so many times faster to be worth it
LARGEST = 8192


def image_data(numpy, size, batch):
    return numpy.random.rand(batch, size, size, 3).astype("float32"), numpy.random.randint(0, 10, (batch, 1))


def text_data(numpy, words, length, batch):
    return numpy.random.randint(0, words, (batch, length)), numpy.random.randint(0, 2, (batch, 1))


def simple_cnn(layers, model, size):
    """Two blocks of two convolutions."""
    parts = [layers.InputLayer((size, size, 3))]
    for width in (32, 64):
        parts += [
            layers.Conv2D(width, 3, padding="same", activation="relu"),
            layers.Conv2D(width, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.25),
        ]
    parts += [layers.Flatten(), layers.Dense(512, activation="relu"), layers.Dropout(0.5)]
    return model.Sequential(parts + [layers.Dense(10, activation="softmax")])


def resnet(layers, model, size, blocks=18):
    """Version 1 with 6 * blocks + 2 layers: 110."""

    def convolution(tensor, width, strides=1, kernel=3, activation=True):
        tensor = layers.Conv2D(width, kernel, strides=strides, padding="same", kernel_initializer="he_normal")(tensor)
        if kernel == 1:
            return tensor
        tensor = layers.BatchNormalization()(tensor)
        return layers.Activation("relu")(tensor) if activation else tensor

    inputs = layers.Input((size, size, 3))
    tensor = convolution(inputs, 16)
    for stack, width in enumerate((16, 32, 64)):
        for block in range(blocks):
            strides = 2 if stack and not block else 1
            branch = convolution(convolution(tensor, width, strides), width, activation=False)
            tensor = convolution(tensor, width, strides, kernel=1) if strides == 2 else tensor
            tensor = layers.Activation("relu")(layers.add([tensor, branch]))
    tensor = layers.Flatten()(layers.AveragePooling2D(8)(tensor))
    return model.Model(inputs, layers.Dense(10, activation="softmax")(tensor))


def alexnet(layers, model, size):
    parts = [layers.InputLayer((size, size, 3))]
    for width, kernel, strides, pooled in (
        (96, 11, 4, 1),
        (256, 5, 1, 1),
        (384, 3, 1, 0),
        (384, 3, 1, 0),
        (256, 3, 1, 1),
    ):
        padding = "valid" if strides > 1 else "same"
        parts.append(layers.Conv2D(width, kernel, strides=strides, padding=padding, activation="relu"))
        parts += [layers.MaxPooling2D(3, 2)] if pooled else []
    parts.append(layers.Flatten())
    for _ in range(2):
        parts += [layers.Dense(4096, activation="relu"), layers.Dropout(0.5)]
    return model.Sequential(parts + [layers.Dense(10, activation="softmax")])


def text_cnn(layers, model, words, length):
    parts = [layers.InputLayer((length,)), layers.Embedding(words, 50), layers.Dropout(0.2)]
    parts += [layers.Conv1D(250, 3, activation="relu"), layers.GlobalMaxPooling1D()]
    parts += [layers.Dense(250, activation="relu"), layers.Dropout(0.2), layers.Dense(1, activation="sigmoid")]
    return model.Sequential(parts)


def lstm(layers, model, words, length):
    parts = [layers.InputLayer((length,)), layers.Embedding(words, 128)]
    parts += [layers.LSTM(128, dropout=0.2, recurrent_dropout=0.2), layers.Dense(1, activation="sigmoid")]
    return model.Sequential(parts)


def convolutional_lstm(layers, model, words, length):
    parts = [layers.InputLayer((length,)), layers.Embedding(words, 128), layers.Dropout(0.25)]
    parts += [layers.Conv1D(64, 5, activation="relu"), layers.MaxPooling1D(4), layers.LSTM(70)]
    return model.Sequential(parts + [layers.Dense(1, activation="sigmoid")])


# name, data as a person reads it, how a network is made, of which data, samples in a batch
NETWORKS = (
    ("resnet110", "32x32 images", resnet, image_data, (32,), 32),
    ("conv1d", "400 words", text_cnn, text_data, (5000, 400), 32),
    ("lstm", "80 words", lstm, text_data, (20000, 80), 32),
    ("conv-lstm", "100 words", convolutional_lstm, text_data, (20000, 100), 30),
    ("cnn-128", "128x128 images", simple_cnn, image_data, (128,), 32),
    ("resnet110-128", "128x128 images", resnet, image_data, (128,), 32),
    ("alexnet-128", "128x128 images", alexnet, image_data, (128,), 32),
)
NAMES = tuple(one[0] for one in NETWORKS)


def gpus():
    """The GPUs that TensorFlow would use, in its words."""
    from tensorflow.python.client import device_lib

    return [device.physical_device_desc for device in device_lib.list_local_devices() if device.device_type == "GPU"]


def has_room():
    """Whether memory for a batch twice as large is free: a process that takes more ends others of the host."""
    with open("/proc/meminfo") as source:
        free = [int(line.split()[1]) for line in source if line.startswith("MemAvailable:")]
    return bool(free) and free[0] > 2 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def timed(train, seconds, least):
    """The seconds of each batch of a training that takes so many seconds, and so many batches at least."""
    spent = []
    while len(spent) < least or sum(spent) < seconds:
        start = time.time()
        train()  # it returns the loss, so the batch has been computed
        spent.append(time.time() - start)
    return spent


def measure(name, seconds):
    """{"samples_per_second", "percent", "batch", "batches"} of a training that takes so many seconds, with the batch from which samples/s hardly grow.

    percent: how far the middle half of the batches is apart, of their median.
    """
    import numpy
    import tensorflow

    _, _, make, make_data, shape, batch = NETWORKS[NAMES.index(name)]
    keras, text = tensorflow.keras, make_data is text_data
    network = make(keras.layers, keras.models, *shape)
    network.compile(loss="binary_crossentropy" if text else "sparse_categorical_crossentropy", optimizer="adam")

    def training(size):
        """A call that trains one batch of this size, which is warm."""
        inputs, targets = make_data(numpy, *(shape + (size,)))
        for _ in range(WARM_UP):
            network.train_on_batch(inputs, targets)
        return lambda: network.train_on_batch(inputs, targets)

    def tried(size):
        train = training(size)
        spent = timed(train, seconds / 10.0, TRIED)
        return train, size * len(spent) / sum(spent)

    train, rate = tried(batch)
    while 2 * batch <= LARGEST and has_room():
        try:
            larger_train, larger_rate = tried(2 * batch)
        except tensorflow.errors.ResourceExhaustedError:  # of a GPU
            break
        if larger_rate < GROWTH * rate:
            break
        train, rate, batch = larger_train, larger_rate, 2 * batch
    spent = sorted(timed(train, seconds, LEAST))
    quarter, half = len(spent) // 4, len(spent) // 2
    return {
        "samples_per_second": len(spent) * batch / sum(spent),
        "percent": round(100 * (spent[-1 - quarter] - spent[quarter]) / spent[half]),
        "batch": batch,
        "batches": len(spent),
    }


def main(path, name, *seconds):
    """The answer goes to a file: TensorFlow writes to both streams."""
    answer = measure(name, *seconds) if seconds else gpus()
    with open(path, "w") as target:
        json.dump(answer, target)
