#!/bin/sh
# install_parcel.sh RELEASE: CDSW as Cloudera Manager installs it; it runs without GPUs.
set -eu
parcel=CDSW-$1.p1.47677668
mkdir -p "/opt/cloudera/parcels/$parcel/scripts" /var/lib/cdsw /srv/cdsw
cp /srv/demo-cdsw/cdsw "/opt/cloudera/parcels/$parcel/scripts/cdsw"
ln -sfn "$parcel" /opt/cloudera/parcels/CDSW
ln -sf /opt/cloudera/parcels/CDSW/scripts/cdsw /usr/bin/cdsw
echo "$1" > /srv/cdsw/release
echo 1 > /srv/cdsw/gpus
echo NVIDIA_GPU_ENABLE=false > /srv/cdsw/running.conf
