"""32 x 32 colour images in ten classes: made ones, or those of CIFAR-10, and a network for them after Keras' cifar10_cnn."""

from __future__ import absolute_import, division, print_function

import pickle

import numpy as np

SIZE, CLASSES = 32, 10


def add_hdfs():
    """Importing tensorflow_io lets TensorFlow read hdfs:// from 2.6 on; a stack without it works with local paths."""
    try:  # noqa: SIM105 (Python 2.7)
        import tensorflow_io  # noqa: F401
    except ImportError:
        pass


def made(count, seed):
    """Stripes in noise: the class is their direction. Width, colours and place are random, so a network must learn it."""
    random = np.random.RandomState(seed)
    answers = np.arange(count) % CLASSES
    angles = (np.pi * answers / CLASSES).reshape(-1, 1, 1)
    width, place = (random.uniform(low, high, (count, 1, 1)) for low, high in ((4, 9), (0, 2 * np.pi)))
    rows, columns = np.mgrid[:SIZE, :SIZE]
    waves = np.sin((rows * np.sin(angles) + columns * np.cos(angles)) * 2 * np.pi / width + place)
    pixels = 0.5 + waves[..., None] * random.uniform(0.1, 0.4, (count, 1, 1, 3))
    return (pixels + random.normal(0, 0.15, pixels.shape)).clip(0, 1).astype("float32"), answers.astype("int64")


def batch(tf, path):
    """One batch of CIFAR-10's archive for Python, from a local disk or HDFS."""
    with tf.io.gfile.GFile(path, "rb") as handle:
        text = handle.read()
    options = {} if str is bytes else {"encoding": "bytes"}  # Python 2.7 has no encoding
    content = pickle.loads(text, **options)  # noqa: S301 (the user's file)
    pixels = np.asarray(content[b"data"], "float32").reshape(-1, 3, SIZE, SIZE).transpose(0, 2, 3, 1) / 255
    return pixels, np.asarray(content[b"labels"], "int64")


def load(tf, directory=None):
    """((pixels, answers) to train with, (pixels, answers) held out)."""
    if not directory:
        return made(2000, seed=1), made(500, seed=2)
    parts = [batch(tf, path) for path in sorted(tf.io.gfile.glob(directory + "/data_batch_*"))]
    if not parts:
        raise SystemExit("CIFAR-10's data_batch_1 to 5 and test_batch are required in %s but are missing." % directory)
    return tuple(np.concatenate(arrays) for arrays in zip(*parts)), batch(tf, directory + "/test_batch")


def network(keras):
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Conv2D(32, 3, padding="same", activation="relu", input_shape=(SIZE, SIZE, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(CLASSES, activation="softmax"),
        ]
    )
