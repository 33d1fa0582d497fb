//! The image's configuration blob.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::recipe::Settings;

/// The configuration, with its fields in the order in which they are written.
/// The optional fields may also be `null`: other tools write them so.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<String>,
    pub(crate) architecture: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variant: Option<String>,
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) config: Option<Runtime>,
    pub(crate) rootfs: RootFs,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) history: Option<Vec<History>>,
}

/// How a container of the image starts.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Runtime {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) env: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) entrypoint: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cmd: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) working_dir: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) labels: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop_signal: Option<String>,
    /// These are read only to refuse a base that has them.
    #[serde(skip_serializing)]
    volumes: Option<serde_json::Value>,
    #[serde(skip_serializing)]
    exposed_ports: Option<serde_json::Value>,
    #[serde(skip_serializing)]
    on_build: Option<serde_json::Value>,
    #[serde(skip_serializing)]
    healthcheck: Option<serde_json::Value>,
}

/// The layers before compression.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct RootFs {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) diff_ids: Vec<String>,
}

/// Where a layer came from.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct History {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) empty_layer: Option<bool>,
}

impl Runtime {
    /// The first instruction whose effect a base carries although it would be
    /// refused in a Dockerfile.
    pub(crate) fn refused(&self) -> Option<&'static str> {
        let set = |value: &Option<serde_json::Value>| match value {
            None | Some(serde_json::Value::Null) => false,
            Some(serde_json::Value::Object(map)) => !map.is_empty(),
            Some(serde_json::Value::Array(list)) => !list.is_empty(),
            Some(_) => true,
        };
        [
            ("VOLUME", &self.volumes),
            ("EXPOSE", &self.exposed_ports),
            ("ONBUILD", &self.on_build),
            ("HEALTHCHECK", &self.healthcheck),
        ]
        .into_iter()
        .find(|(_, value)| set(value))
        .map(|(name, _)| name)
    }

    /// Lays a Dockerfile's settings over a base's.
    pub(crate) fn apply(&mut self, settings: &Settings) {
        if let Some(entrypoint) = &settings.entrypoint {
            self.entrypoint = Some(entrypoint.clone());
            // The base's arguments were meant for the base's program.
            self.cmd = None;
        }
        if let Some(cmd) = &settings.cmd {
            self.cmd = Some(cmd.clone()).filter(|cmd| !cmd.is_empty());
        }
        if let Some(user) = &settings.user {
            self.user = Some(user.clone());
        }
        if let Some(workdir) = &settings.workdir {
            self.working_dir = Some(workdir.clone());
        }
        if let Some(signal) = &settings.stop_signal {
            self.stop_signal = Some(signal.clone());
        }
        for (key, value) in &settings.env {
            let env = self.env.get_or_insert_default();
            let known = env.iter_mut().find(|entry| {
                let name = entry
                    .split_once('=')
                    .map_or(entry.as_str(), |(name, _)| name);
                name == key
            });
            let entry = format!("{key}={value}");
            match known {
                Some(known) => *known = entry,
                None => env.push(entry),
            }
        }
        for (key, value) in &settings.labels {
            let labels = self.labels.get_or_insert_default();
            labels.insert(key.clone(), value.clone());
        }
    }
}

/// The architecture's name in OCI's (that is, Go's) vocabulary.
pub(crate) fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "loongarch64" => "loong64",
        other => other,
    }
}

/// Seconds since 1970 as RFC 3339 in UTC.
pub(crate) fn rfc3339(epoch: u64) -> String {
    let (days, seconds) = (epoch / 86_400, epoch % 86_400);
    // Counted in 400-year cycles from 1 March of year 0, so that the leap day
    // is the last of its year.
    let shifted = days + 719_468;
    let (cycle, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + cycle * 400 + carry;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day_of_month:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{Runtime, rfc3339};
    use crate::Settings;

    #[test]
    fn times_are_utc_with_leap_days() {
        for (epoch, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (8_589_934_591, "2242-03-16T12:56:31Z"),
        ] {
            assert_eq!(rfc3339(epoch), text);
        }
    }

    #[test]
    fn settings_lie_over_the_base() {
        let text = r#"{"Env":["A=1","B=2"],"Cmd":["old"],"Labels":null,"User":"root"}"#;
        let mut runtime: Runtime = serde_json::from_str(text).unwrap();
        let settings = Settings {
            env: vec![("B".into(), "3".into()), ("C".into(), "4".into())],
            entrypoint: Some(vec!["/e".into()]),
            ..Settings::default()
        };
        runtime.apply(&settings);
        let json = serde_json::to_string(&runtime).unwrap();
        assert_eq!(
            json,
            r#"{"User":"root","Env":["A=1","B=3","C=4"],"Entrypoint":["/e"]}"#
        );
    }

    #[test]
    fn a_base_with_a_volume_is_noticed() {
        let parse = |text| serde_json::from_str::<Runtime>(text).unwrap().refused();
        assert_eq!(parse(r#"{"Volumes":{"/data":{}}}"#), Some("VOLUME"));
        assert_eq!(
            parse(r#"{"Volumes":null,"ExposedPorts":{},"OnBuild":[]}"#),
            None
        );
        assert_eq!(
            parse(r#"{"Healthcheck":{"Test":["NONE"]}}"#),
            Some("HEALTHCHECK")
        );
    }
}
