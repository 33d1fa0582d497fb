//! Settings → the command line that a person could have typed instead.

use tki_evidence::settings::Settings;

/// The equivalent `docker run`. The seccomp profile is named by the file that
/// lies beside the evidence.
pub fn docker_run(
    settings: &Settings,
    name: &str,
    labels: &[(String, String)],
    seccomp_file: &str,
    image: &str,
) -> Vec<String> {
    let mut line = vec!["env".to_owned()];
    for variable in REMOVED_VARIABLES {
        line.push(format!("--unset={variable}"));
    }
    // The image is there or the run fails: nothing is ever fetched.
    line.extend(["docker", "run", "--pull=never", "--rm", "--interactive"].map(String::from));
    let mut flag = |name: &str, value: String| line.push(format!("--{name}={value}"));
    flag("name", name.into());
    for (key, value) in labels {
        flag("label", format!("{key}={value}"));
    }
    flag("network", settings.network.clone());
    flag("ipc", settings.ipc.clone());
    flag("cgroupns", settings.cgroupns.clone());
    flag("hostname", settings.hostname.clone());
    flag("read-only", settings.read_only_rootfs.to_string());
    flag("user", settings.user.clone());
    // A variable that is named but not set where the client runs is removed.
    for variable in REMOVED_VARIABLES {
        flag("env", (*variable).into());
    }
    for bind in &settings.binds {
        let access = if bind.read_only { ",readonly" } else { "" };
        flag(
            "mount",
            format!("type=bind,src={},dst={}{access}", bind.source, bind.target),
        );
    }
    for tmpfs in &settings.tmpfs {
        flag("tmpfs", format!("{}:{}", tmpfs.target, tmpfs.options));
    }
    for capability in &settings.cap_drop {
        flag("cap-drop", capability.clone());
    }
    for capability in &settings.cap_add {
        flag("cap-add", capability.clone());
    }
    if settings.no_new_privileges {
        flag("security-opt", "no-new-privileges".into());
    }
    flag("security-opt", format!("seccomp={seccomp_file}"));
    flag("pids-limit", settings.pids_limit.to_string());
    flag("memory", settings.memory_bytes.to_string());
    if settings.memory_swap_bytes != 0 {
        flag("memory-swap", settings.memory_swap_bytes.to_string());
    }
    flag("cpu-period", settings.cpu_period_us.to_string());
    flag("cpu-quota", settings.cpu_quota_us.to_string());
    for limit in &settings.ulimits {
        flag(
            "ulimit",
            format!("{}={}:{}", limit.name, limit.soft, limit.hard),
        );
    }
    flag("log-driver", settings.log_driver.clone());
    line.push(image.into());
    line.push("probe".into());
    line
}

/// Variables that engines set by themselves and that nobody inside needs.
pub const REMOVED_VARIABLES: &[&str] = &["PATH", "HOSTNAME"];
