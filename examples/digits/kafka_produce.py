"""Send the digits to a Kafka topic, one row a message, training rows first.

tfos-submit --local kafka_produce.py --brokers edge1:9092 --topic digits
"""

from __future__ import absolute_import, division, print_function

import argparse

import digits


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--brokers", required=True, help="host:port of a broker")
    parser.add_argument("--topic", required=True, help="created with one partition if the broker allows it")
    arguments = parser.parse_args()

    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    try:
        producer = KafkaProducer(bootstrap_servers=arguments.brokers, max_block_ms=60000)
        training, held_out = digits.split(digits.lines())
        futures = [producer.send(arguments.topic, row.encode("ascii"), partition=0) for row in training + held_out]
        for future in futures:
            future.get(timeout=60)
        producer.close(timeout=60)
    except KafkaError as error:
        raise SystemExit(  # Python 2.7 has no "from"
            "Broker %s rejected the digits: %s. Check that it runs and that its advertised "
            "listener can be reached from here." % (arguments.brokers, error)
        )
    print("%d rows are in the topic %s of %s." % (len(futures), arguments.topic, arguments.brokers))


if __name__ == "__main__":
    main()
