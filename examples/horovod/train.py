"""Train on 32 x 32 colour images with Keras and Horovod: plain.py of examples/images, for any number of processes.

horovodrun -np 2 python train.py --output ~/runs/images, or launch.py on executors of Spark
"""

import argparse

import images


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="directory for the model and the events")
    parser.add_argument("--data", help="directory with the batches of CIFAR-10; images are made without it")
    parser.add_argument("--epochs", type=int, default=4, help="how often each image is used")
    parser.add_argument("--learning-rate", type=float, default=0.001, help="of Adam")
    return parser.parse_args()


def main(arguments):
    import horovod.tensorflow.keras as hvd
    import tensorflow as tf

    images.add_hdfs()
    hvd.init()
    training, held_out = images.load(tf, arguments.data)
    share = len(training[0]) // hvd.size()  # the same for all: each step waits for every process
    training = [part[hvd.rank() * share :][:share] for part in training]
    model = images.network(tf.keras)
    adam = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(arguments.learning_rate))
    # Without the last argument, Keras of TensorFlow 1.15 may go around Horovod's optimizer.
    model.compile(adam, "sparse_categorical_crossentropy", ["accuracy"], experimental_run_tf_function=False)
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    if hvd.rank() == 0:
        callbacks.append(tf.keras.callbacks.TensorBoard(arguments.output + "/events", profile_batch=0))
    verbose = 2 if hvd.rank() == 0 else 0
    model.fit(*training, batch_size=64, epochs=arguments.epochs, callbacks=callbacks, verbose=verbose)
    accuracy = model.evaluate(*held_out, verbose=0)[1]
    print("RESULT process %d of %d accuracy %.3f" % (hvd.rank(), hvd.size(), accuracy))
    if hvd.rank() == 0:
        save(tf, model, arguments.output + "/model")


def save(tf, model, path):
    if tf.executing_eagerly():
        tf.saved_model.save(model, path)
    else:  # TensorFlow 1.15
        session = tf.compat.v1.keras.backend.get_session()
        tf.compat.v1.saved_model.simple_save(session, path, {"images": model.input}, {"classes": model.output})


if __name__ == "__main__":
    main(options())
