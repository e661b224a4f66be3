#!/bin/bash
# rgw.sh - two Ceph object gateways with separate data on loopback, for tests.
#
#   rgw.sh start DIR PORT1 PORT2     a monitor, an OSD in memory, one gateway a port: regions us-east-1 and eu-west-1
#   rgw.sh stop DIR
#
# Needs radosgw, ceph-mon, ceph-osd and ceph-common of Debian. No systemd, no cephx; everything is below DIR and ends
# with `stop`. Each gateway has its own realm, zone and pools, and the user of RGW_ID and RGW_SECRET.
set -euo pipefail

id=${RGW_ID:-RGWTESTACCESSKEY0001}
secret=${RGW_SECRET:-rgwtestsecret0123456789abcdefghijklmnop}
command=${1:-}
[ $# -ge 2 ] || {
    sed -n '2,9p' "$0"
    exit 2
}
mkdir -p "$2"
dir=$(cd "$2" && pwd)
conf=$dir/ceph.conf
shift 2

die() {
    echo "rgw.sh: $*; see $dir/*.log" >&2
    exit 1
}

quiet() {
    "$@" >>"$dir/rgw.log" 2>&1
}

# Path of a port's listener is up within 60 s.
wait_port() {
    local i
    for ((i = 0; i < 1200; i++)); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 0; fi
        sleep 0.05
    done
    die "nothing listens on port $1"
}

write_conf() {
    local mon=$1
    cat >"$conf" <<TEXT
[global]
fsid = $(cat /proc/sys/kernel/random/uuid)
mon_host = v2:127.0.0.1:$mon
mon_initial_members = a
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
# Without cephx a "secure" monitor session, the gateway's default, never comes up.
ms_mon_client_mode = crc
ms_bind_ipv6 = false
ms_bind_msgr1 = false
ms_bind_port_min = $((mon + 1))
ms_bind_port_max = $((mon + 40))
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
run_dir = $dir
log_file = $dir/\$name.log
pid_file = $dir/\$name.pid
admin_socket = $dir/\$name.asok
crash_dir = $dir/crash
mon_data = $dir/mon
osd_data = $dir/osd
rgw_data = $dir
osd_objectstore = memstore
memstore_device_bytes = 6442450944
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
mon_data_avail_crit = 1
mon_data_avail_warn = 2
mon_osd_full_ratio = .99
mon_osd_backfillfull_ratio = .98
mon_osd_nearfull_ratio = .97
osd_failsafe_full_ratio = .99
paxos_propose_interval = 0.05
rgw_override_bucket_index_max_shards = 1
rgw_dynamic_resharding = false
# Two cores: the default of 512 threads costs a third of the rate.
rgw_thread_pool_size = 8
rgw_enable_usage_log = false
# Keys of the requests' own and of ours, over loopback in clear.
rgw_crypt_require_ssl = false
rgw_crypt_s3_kms_backend = testing
rgw_crypt_s3_kms_encryption_keys = of-the-destination=$(printf '%032d' 7 | base64)
rgw_enable_ops_log = false
TEXT
}

admin() {
    radosgw-admin -c "$conf" -n client.admin "$@" 2>>"$dir/rgw.log"
}

# A realm with one zone whose system pools are folded into few, some storage classes (one more may be named), and one user.
make_region() {
    local region=$1 class
    local zone=(--rgw-realm="$region" --rgw-zonegroup="$region" --rgw-zone="$region")
    quiet admin realm create --rgw-realm="$region" --default || die "realm $region"
    quiet admin zonegroup create --rgw-realm="$region" --rgw-zonegroup="$region" --api-name="$region" \
        --master --default || die "zone group $region"
    quiet admin zone create "${zone[@]}" --master --default || die "zone $region"
    admin zone get "${zone[@]}" |
        sed -e "s#\"$region\.rgw\.\(log\|meta\|control\|otp\)#\"$region.sys:\1#" \
            -e "s#sys:\(log\|meta\):#sys:\1.#" -e "s#\"$region\.rgw\.buckets\.#\"$region.#" \
            -e "s#\"$region.non-ec\"#\"$region.data:extra\"#" >"$dir/zone.$region.json"
    quiet admin zone set "${zone[@]}" --infile "$dir/zone.$region.json" || die "zone set $region"
    for class in STANDARD_IA ONEZONE_IA REDUCED_REDUNDANCY ${2:-}; do
        quiet admin zonegroup placement add --rgw-realm="$region" --rgw-zonegroup="$region" \
            --placement-id=default-placement --storage-class="$class" || die "class $class"
        quiet admin zone placement add "${zone[@]}" --placement-id=default-placement --storage-class="$class" \
            --data-pool="$region.data" || die "class $class in the zone"
    done
    quiet admin period update "${zone[@]}" --commit || die "period $region"
    quiet admin user create "${zone[@]}" --uid=xfer --display-name=xfer --access-key="$id" \
        --secret-key="$secret" || die "user in $region"
}

start() {
    [ $# = 2 ] || die "start needs two ports"
    # Like the gateways' ports below the kernel's own range: an outgoing connection would take it meanwhile.
    local program mon=$(($1 < 26000 ? $1 + 6000 : $1 - 6000)) regions=(us-east-1 eu-west-1) classes=(GLACIER_IR '') i=0 port
    for program in ceph-mon ceph-osd radosgw radosgw-admin ceph monmaptool; do
        command -v "$program" >/dev/null || die "$program is not installed (./dev setup test)"
    done
    write_conf "$mon"
    mkdir -p "$dir/mon" "$dir/osd" "$dir/crash"
    local fsid osd
    fsid=$(sed -n 's/^fsid = //p' "$conf")
    quiet monmaptool --create --clobber --fsid "$fsid" --addv a "[v2:127.0.0.1:$mon]" "$dir/monmap" || die monmap
    quiet ceph-mon -c "$conf" -i a --mkfs --monmap "$dir/monmap" || die "monitor mkfs"
    quiet ceph-mon -c "$conf" -i a || die monitor
    osd=$(cat /proc/sys/kernel/random/uuid)
    quiet timeout 60 ceph -c "$conf" --connect-timeout 30 osd new "$osd" || die "osd new"
    quiet ceph-osd -c "$conf" -i 0 --mkfs --osd-uuid "$osd" || die "osd mkfs"
    quiet ceph-osd -c "$conf" -i 0 || die osd
    for port in "$@"; do
        make_region "${regions[i]}" "${classes[i]}"
        quiet timeout 120 radosgw -c "$conf" -n "client.rgw.$i" --rgw-realm="${regions[i]}" \
            --rgw-zonegroup="${regions[i]}" --rgw-zone="${regions[i]}" \
            --rgw-frontends="beast tcp_nodelay=1 endpoint=127.0.0.1:$port" || die "gateway on $port"
        wait_port "$port"
        i=$((i + 1))
    done
}

# Only processes that run with our configuration file.
stop() {
    local file pid
    for file in "$dir"/*.pid; do
        [ -e "$file" ] || continue
        pid=$(cat "$file")
        if tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$conf"; then
            kill -9 "$pid" # memory only: there is nothing to save
        fi
        rm -f "$file"
    done
}

case "$command" in
start) start "$@" ;;
stop) stop ;;
*) die "unknown command '$command'" ;;
esac
