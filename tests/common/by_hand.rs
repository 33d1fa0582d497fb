//! The command line that evidence records, executed as it stands.

use super::{read_json, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything that the recorded command line needs; gone when dropped.
pub struct ByHand {
    words: Vec<String>,
    /// Where the profile lies that the command line names.
    folder: PathBuf,
    /// The parent of /in and /out on the host, if they are directories there.
    base: Option<PathBuf>,
}

impl ByHand {
    /// Prepares what the evidence names: two directories and the profile.
    pub fn new(evidence: &Path) -> Self {
        let sandbox = read_json(evidence)["sandbox"].clone();
        let mut base = None;
        let binds = sandbox["declared"]["binds"].as_array().unwrap();
        for bind in binds.iter().filter(|bind| bind["kind"] == "bind") {
            let source = Path::new(bind["source"].as_str().unwrap());
            fs::create_dir_all(source).unwrap();
            fs::set_permissions(source, fs::Permissions::from_mode(0o777)).unwrap();
            base = source.parent().map(Path::to_owned);
        }
        let words = sandbox["command_line"].as_array().unwrap();
        let text = |word: &serde_json::Value| word.as_str().unwrap().to_owned();
        Self {
            words: words.iter().map(text).collect(),
            folder: evidence.with_extension(""),
            base,
        }
    }

    /// The same sandbox with another errand for the prober.
    pub fn errand(&self, word: &str) -> Command {
        let mut command = Command::new(&self.words[0]);
        let (last, words) = self.words[1..].split_last().unwrap();
        assert_eq!(last, "probe");
        command.args(words).arg(word).current_dir(&self.folder);
        command
    }

    /// The same sandbox, changed, with the inspector in it.
    pub fn inspector(&self, change: impl Fn(&mut Vec<String>)) -> Command {
        let mut words = self.words.clone();
        assert_eq!(words.pop().as_deref(), Some("probe"));
        let image = words.pop().unwrap();
        change(&mut words);
        words.extend([
            "--entrypoint=/tki-inspector".to_owned(),
            image,
            "inspect".to_owned(),
        ]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.folder);
        command
    }

    /// The command, word by word.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(&self.folder);
        command
    }
}

impl Drop for ByHand {
    fn drop(&mut self) {
        if let Some(base) = &self.base {
            let _ = fs::remove_dir_all(base);
        }
        // The volume that the command line names, on the engine whose line it is.
        let source = "--mount=type=volume,src=";
        let name = self.words.iter().find_map(|word| word.strip_prefix(source));
        let name = name.and_then(|rest| rest.split(',').next());
        let engine = ["docker", "podman"]
            .into_iter()
            .find(|engine| self.words.iter().any(|word| word == engine));
        if let (Some(name), Some(engine)) = (name, engine) {
            let _ = run(Command::new(engine).args(["volume", "rm", name]));
        }
    }
}
