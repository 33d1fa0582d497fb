//! The image stage against the tools that will meet its images: accepted by skopeo, umoci
//! and Docker, and the same file tree as BuildKit makes of the same Dockerfile.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::common::layers::{Bench, Contents, options, stage, tree};
use crate::common::{root, whole_engine};
use oci_image::{Context, Recipe, build, read_identity};
use serde_json::Value;

/// The commands that build by BuildKit, in order of preference: not every
/// `docker` on a PATH has the plug-in that newer clients need for it.
const BUILDKIT_CLIENTS: [&str; 2] = ["docker", "/usr/bin/docker"];

/// Runs a tool that must be there; a machine without it fails the test.
fn run(package: &str, command: &mut Command) -> Output {
    let name = command.get_program().to_owned();
    let output = command.output().unwrap_or_else(|error| {
        panic!("cannot run {name:?}: {error}; on Debian: apt-get install {package}")
    });
    assert!(
        output.status.success(),
        "{command:?} failed: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn stdout(output: Output) -> String {
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn skopeo_takes_layout_and_archive() {
    let bench = Bench::new("tki-image-test:attest");
    let layout = format!("oci:{}:attest", bench.layout().display());
    let skopeo = || Command::new("skopeo");
    let inspected = stdout(run("skopeo", skopeo().args(["inspect", &layout])));
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["Digest"], bench.image.manifest_digest.as_str());
    let archive = bench.archive();
    for (source, verbatim) in [
        (layout, true),
        (format!("oci-archive:{}:attest", archive.display()), true),
        (format!("docker-archive:{}", archive.display()), false),
    ] {
        let copy = bench.path("copy");
        let target = format!("oci:{}:attest", copy.display());
        run(
            "skopeo",
            skopeo().args(["--insecure-policy", "copy", "-q", &source, &target]),
        );
        let identity = read_identity(&copy).unwrap();
        assert_eq!(identity.diff_ids, bench.image.diff_ids, "{source}");
        if verbatim {
            assert_eq!(
                identity.manifest_digest, bench.image.manifest_digest,
                "{source}"
            );
            assert_eq!(
                identity.config_digest, bench.image.config_digest,
                "{source}"
            );
        }
        fs::remove_dir_all(copy).unwrap();
    }
}

#[test]
fn a_layout_that_skopeo_wrote_serves_as_a_base() {
    let bench = Bench::new("tki-image-test:attest");
    let source = format!("oci:{}:attest", bench.layout().display());
    let base = bench.path("base");
    let target = format!("oci:{}:attest", base.display());
    let mut skopeo = Command::new("skopeo");
    run(
        "skopeo",
        skopeo.args(["--insecure-policy", "copy", "-q", &source, &target]),
    );
    let recipe = Recipe::parse("Dockerfile", b"FROM base\nCOPY f /escape/f\n").unwrap();
    let context = Context::directory(bench.path("context")).unwrap();
    let mut options = options("tki-image-test:layered");
    options.bases.insert("base".into(), base);
    let image = build(&recipe, &context, &options).unwrap();
    assert_eq!(image.diff_ids[..1], bench.image.diff_ids);
    let (below, above) = (tree(&bench.image.archive()), tree(&image.archive()));
    assert_eq!(above.entries["escape"], below.entries["escape"]);
    assert!(above.entries.contains_key("escape/f"));
    assert_eq!(above.config["config"], below.config["config"]);
}

#[test]
fn umoci_unpacks_the_layout() {
    let bench = Bench::new("tki-image-test:attest");
    let bundle = bench.path("bundle");
    let mut command = Command::new("umoci");
    command.arg("unpack");
    if !rustix::process::getuid().is_root() {
        command.arg("--rootless");
    }
    let image = format!("{}:attest", bench.layout().display());
    run("umoci", command.args(["--image", &image]).arg(&bundle));
    let rootfs = bundle.join("rootfs");
    let found = fs::metadata(rootfs.join("tki-prober")).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o555);
    for (path, entry) in tree(&bench.image.archive()).entries {
        let found = fs::symlink_metadata(rootfs.join(&path)).unwrap();
        assert_eq!(found.permissions().mode() & 0o7777, entry.mode, "{path}");
    }
}

/// Removes one image by the name that only this test uses.
struct Tag(String);

impl Tag {
    fn new(case: &str) -> Self {
        Self(format!("tki-image-test:{case}-{}", std::process::id()))
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "-f", &self.0]).output();
    }
}

#[test]
fn docker_loads_the_archive_under_the_config_digest() {
    let _engine = whole_engine();
    let tag = Tag::new("load");
    let bench = Bench::new(&tag.0);
    let mut load = Command::new("docker");
    run(
        "docker.io",
        load.args(["load", "-q", "-i"]).arg(bench.archive()),
    );
    let mut inspect = Command::new("docker");
    let inspected = stdout(run("docker.io", inspect.args(["image", "inspect", &tag.0])));
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    let id = inspected[0]["Id"].as_str().unwrap();
    // The classic store reports the configuration, the containerd store the manifest.
    assert!([&bench.image.config_digest, &bench.image.manifest_digest].contains(&&id.to_owned()));
    assert_eq!(
        inspected[0]["RootFS"]["Layers"],
        serde_json::json!(bench.image.diff_ids)
    );
}

/// The JSON Schemas of the OCI image specification, and what installs them.
const SCHEMAS: &str = "/usr/share/gocode/src/github.com/opencontainers/image-spec/schema";
const SCHEMAS_PACKAGE: &str = "golang-github-opencontainers-image-spec-dev";

#[test]
fn documents_follow_the_oci_schemas() {
    let schemas = Path::new(SCHEMAS);
    assert!(
        schemas.is_dir(),
        "{SCHEMAS} is missing; on Debian: apt-get install {SCHEMAS_PACKAGE}"
    );
    let bench = Bench::new("tki-image-test:schemas");
    let layout = bench.layout();
    let blob = |digest: &str| layout.join("blobs/sha256").join(&digest[7..]);
    let mut python = Command::new("python3");
    python.args(["-W", "ignore", "-c", VALIDATE]).arg(schemas);
    for (schema, document) in [
        ("image-layout-schema.json", layout.join("oci-layout")),
        ("image-index-schema.json", layout.join("index.json")),
        (
            "image-manifest-schema.json",
            blob(&bench.image.manifest_digest),
        ),
        ("config-schema.json", blob(&bench.image.config_digest)),
    ] {
        python.arg(schema).arg(document);
    }
    let printed = stdout(run("python3-jsonschema", &mut python));
    assert_eq!(printed, "4 documents valid");
}

/// Validates pairs of schema and document. The schemas' ids are web addresses;
/// without them the relative references resolve to the files beside.
const VALIDATE: &str = r#"
import json, pathlib, sys
import jsonschema
def load(path):
    def strip(node):
        if isinstance(node, dict):
            return {k: strip(v) for k, v in node.items() if not (k == "id" and isinstance(v, str))}
        return [strip(v) for v in node] if isinstance(node, list) else node
    return strip(json.loads(pathlib.Path(path).read_text()))
folder = pathlib.Path(sys.argv[1]).resolve()
store = {p.as_uri(): load(p) for p in folder.glob("*.json")}
pairs = list(zip(sys.argv[2::2], sys.argv[3::2]))
for schema, document in pairs:
    uri = (folder / schema).as_uri()
    resolver = jsonschema.RefResolver(uri, store[uri], store=store)
    validator = jsonschema.Draft4Validator(store[uri], resolver=resolver)
    validator.validate(json.loads(pathlib.Path(document).read_text()))
    broken = validator.is_valid({"schemaVersion": "x", "imageLayoutVersion": 1})
    assert not broken, "the schema accepts anything"
print(len(pairs), "documents valid")
"#;

fn buildkit(dockerfile: &Path, context: &Path, tag: &Tag) -> Contents {
    let mut reasons = Vec::new();
    for client in BUILDKIT_CLIENTS {
        let mut command = Command::new(client);
        command
            .env("DOCKER_BUILDKIT", "1")
            .args(["build", "-q", "-t", &tag.0, "-f"]);
        match command.arg(dockerfile).arg(context).output() {
            Ok(output) if output.status.success() => {
                let mut save = Command::new(client);
                return tree(&run("docker.io", save.args(["save", &tag.0])).stdout);
            }
            Ok(output) => reasons.push(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    panic!(
        "no docker with BuildKit; on Debian: apt-get install docker.io\n{}",
        reasons.join("\n")
    );
}

/// Compares our build of a Dockerfile with BuildKit's.
fn assert_same_as_buildkit(dockerfile: &Path, case: &str) {
    let dir = tempfile::tempdir().unwrap();
    let context = dir.path().join("context");
    stage(&context);
    let tag = Tag::new(case);
    let recipe = Recipe::read(dockerfile).unwrap();
    let image = build(
        &recipe,
        &Context::directory(&context).unwrap(),
        &options(&tag.0),
    )
    .unwrap();
    let ours = tree(&image.archive());
    let mut theirs = buildkit(dockerfile, &context, &tag);
    for (path, entry) in &mut theirs.entries {
        // Docker 20.10's BuildKit drops the sticky, setuid and setgid bits of
        // --chmod, newer ones keep them; the image stage keeps them.
        let special = ours
            .entries
            .get(path)
            .map_or(0, |entry| entry.mode & 0o7000);
        entry.mode |= special;
    }
    assert_eq!(ours.entries, theirs.entries);
    let env = |config: &Value| -> Vec<Value> {
        let list = config["config"]["Env"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        // BuildKit adds a PATH; the image stage adds nothing.
        let own = |entry: &Value| !entry.as_str().unwrap().starts_with("PATH=");
        list.into_iter().filter(own).collect()
    };
    assert_eq!(env(&ours.config), env(&theirs.config));
    for field in [
        "User",
        "Entrypoint",
        "Cmd",
        "WorkingDir",
        "Labels",
        "StopSignal",
    ] {
        let (ours, theirs) = (
            &ours.config["config"][field],
            &theirs.config["config"][field],
        );
        assert_eq!(ours, theirs, "{field}");
    }
    for field in ["architecture", "os"] {
        assert_eq!(ours.config[field], theirs.config[field], "{field}");
    }
}

#[test]
fn the_sandbox_image_has_the_tree_that_buildkit_makes() {
    let _engine = whole_engine();
    assert_same_as_buildkit(&root().join("image/Dockerfile.sandbox"), "sandbox");
}

/// `--chmod` is not tried on a destination that has to be created: BuildKit's
/// versions disagree about the mode of directories made on the way.
#[test]
fn copy_follows_buildkit_in_every_form() {
    let _engine = whole_engine();
    let dir = tempfile::tempdir().unwrap();
    let dockerfile = dir.path().join("Dockerfile");
    let text = r#"
FROM scratch
COPY --chmod=1777 rootfs/ /
COPY --chmod=444 f /f-444
COPY d /plain/d
COPY --chown=5:5 d /merge
COPY --chmod=0700 e /merge
COPY --chown=55 d /ch/own/d
COPY --chown=55:66 f /ch2/own/f
COPY --chown=56 f /ch2/own/deep/f
COPY f e/ /multi/
COPY f /merge
COPY ["f", "/json/f"]
LABEL a="x y" 'b c'=d e=f\ g h='q"r' \
      # a comment inside
      i="a\"b\\c\d" "k"="v" p="\$5"
ENV A=1 B="two words" A=3
USER 77:88
WORKDIR /wd/deep
COPY f rel/
COPY f plain
COPY e .
USER 9
WORKDIR /merge/sub
WORKDIR /merge/new
STOPSIGNAL SIGTERM
CMD ["probe"]
ENTRYPOINT ["/x", "\u0041"]
"#;
    fs::write(&dockerfile, text).unwrap();
    assert_same_as_buildkit(&dockerfile, "forms");
}
