//! A file system that fills up, for real: a loop device of 16 MiB.

use super::daemon::MIB;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A small file system of its own; unmounted when this is dropped.
pub struct SmallDisk {
    pub mounted: PathBuf,
}

impl SmallDisk {
    /// `None`, and a word why, where nothing can be mounted.
    pub fn mount_or_skip(folder: &Path) -> Option<SmallDisk> {
        SmallDisk::mount(folder)
            .map_err(|why| eprintln!("skipped: no file system can be mounted here: {why}"))
            .ok()
    }

    fn mount(folder: &Path) -> Result<SmallDisk, String> {
        let (image, mounted) = (folder.join("image"), folder.join("mounted"));
        let run = |program: &str, arguments: &[&str]| -> Result<(), String> {
            let output = Command::new(program).args(arguments).output();
            let output = output.map_err(|error| format!("{program}: {error}"))?;
            match output.status.success() {
                true => Ok(()),
                false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
            }
        };
        File::create(&image).and_then(|file| file.set_len(16 * MIB)).map_err(|error| error.to_string())?;
        std::fs::create_dir(&mounted).map_err(|error| error.to_string())?;
        let (image, at) = (image.display().to_string(), mounted.display().to_string());
        run("mkfs.ext4", &["-q", "-F", "-m", "0", &image])?;
        run("mount", &["-o", "loop", &image, &at])?;
        Ok(SmallDisk { mounted })
    }

    /// Takes all the space that is left.
    pub fn fill(&self) {
        let mut file = File::create(self.mounted.join("filler")).expect("a file");
        for size in [64 << 10, 4 << 10, 512, 1] {
            while file.write_all(&vec![7; size]).and_then(|()| file.sync_data()).is_ok() {}
        }
    }

    pub fn free(&self) {
        std::fs::remove_file(self.mounted.join("filler")).expect("it is there");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.mounted).status();
    }
}
