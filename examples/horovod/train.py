"""Train on 32 x 32 colour images with Keras and Horovod: what plain.py of examples/images does, in any number of processes.

horovodrun -np 2 python train.py --output ~/runs/images, or launch.py on executors of Spark
"""

import argparse

import images


def main(output, epochs):
    import horovod.tensorflow.keras as hvd
    import tensorflow as tf

    images.add_hdfs()
    hvd.init()
    training, held_out = images.load(tf)
    share = len(training[0]) // hvd.size()  # the same for all: each step waits for every process
    training = [part[hvd.rank() * share :][:share] for part in training]
    model = images.network(tf.keras)
    adam = hvd.DistributedOptimizer(tf.keras.optimizers.Adam())
    # Without the last argument, Keras of TensorFlow 1.15 may go around Horovod's optimizer.
    model.compile(adam, "sparse_categorical_crossentropy", ["accuracy"], experimental_run_tf_function=False)
    callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
    checkpoints = output + "/checkpoints"
    last = tf.train.latest_checkpoint(checkpoints)  # of a run that was lost
    done = int(last.rpartition("-")[2]) if last else 0
    if last:
        print("begins after epoch %d" % done)
        model.load_weights(last)
    if hvd.rank() == 0:
        callbacks.append(tf.keras.callbacks.TensorBoard(output + "/events", profile_batch=0))
        callbacks.append(tf.keras.callbacks.ModelCheckpoint(checkpoints + "/epoch-{epoch}", save_weights_only=True))
    verbose = 2 if hvd.rank() == 0 else 0
    model.fit(*training, batch_size=64, epochs=epochs, initial_epoch=done, callbacks=callbacks, verbose=verbose)
    accuracy = model.evaluate(*held_out, verbose=0)[1]
    print("RESULT process %d of %d accuracy %.3f" % (hvd.rank(), hvd.size(), accuracy))
    if hvd.rank() == 0:
        save(tf, model, output + "/model")
        tf.io.gfile.rmtree(checkpoints)


def save(tf, model, path):
    if tf.executing_eagerly():
        tf.saved_model.save(model, path)
    else:  # TensorFlow 1.15
        session = tf.compat.v1.keras.backend.get_session()
        tf.compat.v1.saved_model.simple_save(session, path, {"images": model.input}, {"classes": model.output})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True, help="directory for the model and the events")
    parser.add_argument("--epochs", type=int, default=4, help="how often each image is used")
    options = parser.parse_args()
    main(options.output, options.epochs)
