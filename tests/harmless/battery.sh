#!/bin/busybox sh
# shellcheck shell=dash
# Lists everything, talks to the prober twice, lists everything again; then changes
# something in each list and lists everything a last time.

# Whatever the prober misses here is accepted. It goes on for as long as its standard
# input is open.
talk() {
    mkfifo "/record/ask-$1"
    env -i TKI_CANARY_0=set /tki-prober guest < "/record/ask-$1" > "/record/$1" &
    exec 3> "/record/ask-$1"
    until grep -q missing "/record/$1"; do
        sleep 0.1
    done
    missing=$(sed -n 's/.*"missing":\(\[[^]]*\]\).*/\1/p' "/record/$1")
    sed "s/\"accept_missing\":\[\]/\"accept_missing\":$missing/" "/challenge-$1" >&3
    wait $!
    echo "exit of $1: $?"
    exec 3>&-
}

# Into one file for each kind of thing, so that this shell is the same in all of them.
list() {
    mkdir "/record/$1"
    cd "/record/$1" || exit
    before=$(stat -c %s /record/accounting)
    /bin/true
    after=$(stat -c %s /record/accounting)
    echo "$((after > before))" > accounting
    find /sys/fs/cgroup -type d > cgroups
    find /sys/fs/cgroup '(' -name release_agent -o -name notify_on_release -o -name pids.max \
        -o -name 'cpu.cfs_*' -o -name '*limit_in_bytes' ')' -exec grep -H '' {} + >> cgroups
    grep btime /proc/stat > clock
    adjtimex | grep -E 'offset|freq|status|tick' >> clock
    { find / -xdev ! -path /record ! -path /proc; find /in /out /tmp /dev -mindepth 1; } |
        sort | xargs stat -c '%N %f %u:%g %s %h %t:%T' > files
    { find / -xdev -type f; find /in /out /tmp /dev -type f; } | sort | xargs sha256sum > contents
    cat /record/helpers > helpers
    cat /proc/sysvipc/* > ipc
    cat /proc/keys > keys
    awk '{ print $1, $3, $4, $5 }' /proc/key-users >> keys
    cat /proc/$$/limits /proc/1/limits > limits
    dmesg | head -n 1 > log
    cat /proc/modules > modules
    cat /proc/1/mountinfo > mounts
    cat /proc/sys/kernel/hostname /proc/sys/kernel/domainname > names
    stat -c %N /proc/[0-9]*/ns/* | sed 's/.*-> //' | sort -u > namespaces
    cat /proc/net/dev /proc/net/unix /proc/net/packet /proc/net/netlink > network
    { ip addr; ip neigh; ip rule; ip route show table all; ip -6 route show table all; } >> network
    # Threads of the kernel come and go by themselves.
    ps -o pid,ppid,pgid,sid,tty,nice,comm > /record/processes
    awk '$1 != 2 && $2 != 2 && $7 != "ps"' /record/processes > processes
    grep -vE '^(Vm|Rss|Hugetlb|State|SigQ|.*ctxt_switches)' /proc/$$/status > shell
    cat /proc/$$/personality /proc/$$/oom_score_adj /proc/$$/cgroup /proc/1/personality >> shell
    cat /proc/swaps > swap
    # Some of these count what happens meanwhile.
    grep -rs '' /proc/sys |
        grep -vE '^/proc/sys/(kernel/(ns_last_pid|random/(uuid|entropy_avail))|fs/(dentry-state|file-nr|inode-nr|inode-state)):' > sysctls
    stty -g -F /dev/ttyS0 > terminal
    cd /
}

change() {
    perl -e 'syscall(163, 0) == 0 or die $!'
    perl -e 'syscall(29, 0, 4096, 0600) >= 0 or die $!'
    perl -e '($type, $name) = ("user", "changed"); syscall(248, $type, $name, $name, 7, -4) > 0 or die $!'
    mkdir /sys/fs/cgroup/memory/changed
    date -s '2001-01-01 00:00' > /record/date
    echo changed >> /in/tki-probe-target
    ulimit -n 99
    umask 077
    dmesg -c > /record/dmesg
    # The kernel asks for the module that this needs.
    mkdir /tmp/lower /tmp/upper /tmp/work /tmp/merged
    mount -t overlay -o lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work overlay /tmp/merged
    hostname changed
    unshare -u sleep 600 &
    ip addr add 127.0.0.2/8 dev lo
    swapoff /dev/nvme0n1
    stty -F /dev/ttyS0 -echo
}

list before
talk locked
talk unlocked
list after
change
list changed
