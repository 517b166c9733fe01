#!/bin/sh
# The whole example on an edge node, as the user who runs it: sh run.sh spark|tensorflow|parquet|dataframe|kafka
# Writes the digits into HDFS (or the Kafka topic), trains, and leaves the job's result in result.json here.
set -eu
cd "$(dirname "$0")"
mode=${1:-spark}
PATH="/opt/deeplearning/bin:$PATH"
home=${DIRECTORY:-hdfs:///user/$(id -un)}

case $mode in
    spark | tensorflow | parquet | dataframe)
        shared=digits.py,job.py,storage.py input=$mode
        [ "$mode" != dataframe ] || input=tensorflow
        [ "$mode" != parquet ] || input=spark
        train=$(tfos-submit --local choose.py "$input")
        [ "$mode" = "$input" ] || shared="$shared,$train" train=frames.py
        tfos-submit --local prepare.py "$home/digits"
        tfos-submit --executors "${EXECUTORS:-2}" --gpus "${GPUS:-0}" --memory "${MEMORY:-3g}" --timeout "${TIMEOUT:-600}" \
            --py-files "$shared" "$train" --data "$home/digits" --output "$home/model-$mode" --input-mode "$input" \
            --minimum-accuracy 0.95 --result result.json
        ;;
    kafka)
        train=$(tfos-submit --local choose.py "$mode")
        brokers=${KAFKA:-$(hostname):9092}
        topic="digits-$(id -un)-$(date +%s)"
        tfos-submit --local kafka_produce.py --brokers "$brokers" --topic "$topic"
        tfos-submit --local "$train" --brokers "$brokers" --topic "$topic" --minimum-accuracy 0.95 --result result.json
        ;;
    *)
        echo "run.sh: the mode must be spark, tensorflow, parquet, dataframe or kafka but is '$mode'." >&2
        exit 2
        ;;
esac
