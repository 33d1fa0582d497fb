#!/bin/busybox sh
# shellcheck shell=dash
# A machine on which as much as possible is there to be changed, and open: nothing stands
# between the prober and the kernel. Each program that the kernel starts by itself is one
# that writes its name down.
mkdir /in /out /record /sbin /dev/mqueue /root /home /var/lib /boot /host /usr
mount -t mqueue mqueue /dev/mqueue
mount -t tmpfs -o mode=0777 in /in
mount -t tmpfs -o mode=0777 out /out
mount -t tmpfs record /record
mv /tki-probe-target /in/
chmod 1777 /escape
chmod 666 /in/tki-probe-target
echo 'root:*:1:0:99999:7:::' > /etc/shadow

# Groups of version 1, which have a release agent.
mount -t tmpfs groups /sys/fs/cgroup
for kind in cpu memory pids; do
    mkdir "/sys/fs/cgroup/$kind"
    mount -t cgroup -o "$kind" "$kind" "/sys/fs/cgroup/$kind"
done

# Where engines listen.
ln -s /run /var/run
mkdir /run/podman /run/containerd /run/crio
for path in docker podman/podman containerd/containerd crio/crio; do
    perl -e '$path = shift; syscall(133, $path, 0140666, 0) == 0 or die $!' "/run/$path.sock"
done

# A way to everywhere, which ends here.
ip link set lo up
ip route add default dev lo
ip -6 route add default dev lo
hostname machine
mkswap /dev/nvme0n1 > /record/mkswap
swapon /dev/nvme0n1

touch /record/helpers /record/accounting
cat > /helper <<'END'
#!/bin/busybox sh
echo "$0 $*" >> /record/helpers
for last; do :; done
[ "$last" = fs-overlay ] && exec /bin/busybox insmod /modules/overlay.ko
exit 1
END
chmod 755 /helper
for name in core modprobe release request-key; do
    ln -s /helper "/sbin/$name"
done
echo /sbin/modprobe > /proc/sys/kernel/modprobe
echo '|/sbin/core %e %s' > /proc/sys/kernel/core_pattern
echo /sbin/release > /sys/fs/cgroup/memory/release_agent
echo 1 > /sys/fs/cgroup/memory/notify_on_release
ulimit -c unlimited
perl -e '$path = shift; syscall(163, $path) == 0 or die $!' /record/accounting

# With a terminal of its own, which could be hung up.
setsid -c sh /battery < /dev/ttyS0 > /dev/ttyS0 2>&1
