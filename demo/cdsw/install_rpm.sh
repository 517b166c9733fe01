#!/bin/sh
# install_rpm.sh RELEASE: CDSW as an administrator installs or upgrades it from the package; it is restarted with the cdsw.conf that is there then.
set -eu
package=cloudera-data-science-workbench-$1-1.el7
rpm --query --quiet "$package" || rpm --upgrade "/srv/workbench/$package.x86_64.rpm"
sed -i "s/^MASTER_IP=.*/MASTER_IP=\"$(hostname -I | cut -d' ' -f1)\"/" /etc/cdsw/config/cdsw.conf
echo 1 > /srv/cdsw/gpus
cdsw restart
