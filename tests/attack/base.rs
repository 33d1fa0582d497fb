//! A base image whose layers try to change the host while they are unpacked.

use crate::common::{read_json, run, tool};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tki_evidence::stamp::sha256_hex;

/// A name and what it is a link to, if it is one.
type Entry<'a> = (&'a str, Option<&'a Path>);

fn layer(entries: &[Entry]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, target) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o6777);
        header.set_size(0);
        header.set_uid(0);
        header.set_gid(0);
        match target {
            Some(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                tar.append_link(&mut header, name, target).unwrap();
            }
            None => {
                let folder = name.ends_with('/');
                header.set_entry_type(match folder {
                    true => tar::EntryType::Directory,
                    false => tar::EntryType::Regular,
                });
                tar.append_data(&mut header, name, std::io::empty())
                    .unwrap();
            }
        }
    }
    tar.into_inner().unwrap()
}

/// The built-in image with more layers on top.
fn layout(folder: &Path, layers: &[Vec<u8>]) {
    run(tool().args(["build", "-q", "--layout"]).arg(folder)).succeeded();
    let blob = |digest: &Value| {
        let digest = digest.as_str().unwrap().replace(':', "/");
        folder.join("blobs").join(digest)
    };
    let put = |bytes: &[u8]| {
        let digest = Value::from(format!("sha256:{}", sha256_hex(bytes)));
        fs::write(blob(&digest), bytes).unwrap();
        (digest, Value::from(bytes.len()))
    };
    let mut index = read_json(&folder.join("index.json"));
    let entry = &mut index["manifests"][0];
    let mut manifest = read_json(&blob(&entry["digest"]));
    let mut config = read_json(&blob(&manifest["config"]["digest"]));
    for layer in layers {
        let (digest, size) = put(layer);
        config["rootfs"]["diff_ids"]
            .as_array_mut()
            .unwrap()
            .push(digest.clone());
        manifest["layers"]
            .as_array_mut()
            .unwrap()
            .push(serde_json::json!({
                "mediaType": "application/vnd.oci.image.layer.v1.tar",
                "digest": digest,
                "size": size,
            }));
    }
    let (digest, size) = put(config.to_string().as_bytes());
    manifest["config"]["digest"] = digest;
    manifest["config"]["size"] = size;
    let (digest, size) = put(manifest.to_string().as_bytes());
    entry["digest"] = digest;
    entry["size"] = size;
    fs::write(folder.join("index.json"), index.to_string()).unwrap();
}

#[test]
fn no_layer_changes_modes_of_the_host() {
    let place = tempfile::tempdir().unwrap();
    let host = place.path().join("host");
    fs::create_dir(&host).unwrap();
    let file = host.join("x");
    fs::write(&file, "whole").unwrap();
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&file, 0o600);
    set(&host, 0o700);
    let modes = || [&file, &host].map(|path| fs::metadata(path).unwrap().permissions().mode());
    let before = modes();
    let cases: [&[&[Entry]]; 4] = [
        &[&[("x", None), ("x", Some(&file))]],
        &[&[("d/", None), ("d", Some(&host))]],
        &[&[("d/x", None), ("d", Some(&host))]],
        &[&[("d/x", None)], &[("d", Some(&host))]],
    ];
    let recipe = place.path().join("Dockerfile");
    fs::write(&recipe, "FROM base\nLABEL made=here\n").unwrap();
    for (number, case) in cases.iter().enumerate() {
        let base = place.path().join(format!("base-{number}"));
        let layers: Vec<Vec<u8>> = case.iter().map(|entries| layer(entries)).collect();
        layout(&base, &layers);
        for engine in ["embedded", "bwrap"] {
            let mut command = tool();
            command.args(["run", "--venue", "dev", "--engine", engine]);
            command.arg("--build-context");
            command.arg(format!("base=oci-layout://{}", base.display()));
            command.arg("--file").arg(&recipe);
            command.arg("--context").arg(place.path());
            let out = place.path().join(format!("{engine}-{number}"));
            let said = run(command.arg("--out").arg(&out));
            assert_eq!(modes(), before, "{engine} {number}: {said:?}");
            // A name twice in one layer is refused, and says so.
            if number < 2 {
                said.failed(3, "engine.unusable");
                assert!(said.stderr.contains("twice in one layer"), "{said:?}");
            }
        }
    }
}
