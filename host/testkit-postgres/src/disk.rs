//! A small file system of its own, which a test can fill.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::files::run;

/// Written at once while filling.
const PIECE_BYTES: usize = 1 << 20;

/// A file system in memory, unmounted when dropped. It needs root, as tests of full disks do everywhere:
/// there is no other honest way to fill one.
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts it over a folder.
    pub fn mount(at: &Path, bytes: u64) -> Result<SmallDisk> {
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]).arg(at))
            .context("a small disk cannot be mounted: run this test as root")?;
        Ok(SmallDisk { path: at.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is left of it.
    pub fn free_bytes(&self) -> Result<u64> {
        let stat = rustix::fs::statvfs(&self.path)?;
        Ok(stat.f_bavail * stat.f_frsize)
    }

    /// Takes all but so much, beside what took some before.
    pub fn fill(&self, leave: u64) -> Result<()> {
        let file = self.filler();
        let mut file = fs::File::options().create(true).append(true).open(file)?;
        let piece = vec![0; PIECE_BYTES];
        loop {
            let left = self.free_bytes()?.saturating_sub(leave);
            let size = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            // Somebody else may have taken the rest in the meantime: then it is as full as it was to be.
            if size == 0 || file.write_all(piece.get(..size).unwrap_or(&piece)).is_err() {
                return Ok(());
            }
        }
    }

    /// Gives back what [`SmallDisk::fill`] took.
    pub fn make_room(&self) -> Result<()> {
        Ok(fs::remove_file(self.filler())?)
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(&self.path);
    }
}

/// Also while somebody has a file of it open.
pub(crate) fn unmount(path: &Path) {
    // It may not be mounted; and there is nobody to tell.
    let _ = Command::new("umount").arg("--lazy").arg(path).output();
}
