#!/bin/sh
# The whole example on an edge node, as the user who runs it: sh run.sh spark|tensorflow|kafka
# Writes the digits into HDFS (or the Kafka topic), trains, and leaves the job's result in result.json here.
set -eu
cd "$(dirname "$0")"
mode=${1:-spark}
PATH="/opt/deeplearning/bin:$PATH"
home="hdfs:///user/$(id -un)"
major=$(/opt/deeplearning/current/bin/python -c 'import pkg_resources; print(pkg_resources.get_distribution("tensorflow").version.split(".")[0])')

case $mode in
    spark | tensorflow)
        tfos-submit --local prepare.py "$home/digits"
        tfos-submit --executors "${EXECUTORS:-2}" --memory "${MEMORY:-3g}" --timeout "${TIMEOUT:-600}" --py-files digits.py,storage.py \
            "train_tf$major.py" --data "$home/digits" --output "$home/model-$mode" --input-mode "$mode" --num-gpus "${GPUS:-1}" \
            --minimum-accuracy 0.95
        hdfs dfs -cat "$home/model-$mode/result.json" >result.json
        ;;
    kafka)
        brokers=${KAFKA:-$(hostname):9092}
        topic="digits-$(id -un)-$(date +%s)"
        tfos-submit --local kafka_produce.py --brokers "$brokers" --topic "$topic"
        tfos-submit --local kafka_train.py --brokers "$brokers" --topic "$topic" --minimum-accuracy 0.95 --result result.json
        ;;
    *)
        echo "run.sh: the mode has to be spark, tensorflow or kafka, and is '$mode'." >&2
        exit 2
        ;;
esac
