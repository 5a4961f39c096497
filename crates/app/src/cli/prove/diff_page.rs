//! Page of `laglab prove diff -o`.

use std::io::Write;
use std::path::{Path, PathBuf};

use diff::{Comparison, Diff, Recording, Source};
use explore::Explorer;
use report::comparison_page;
use session::NewFile;

use crate::cli::Failure;
use crate::cli::prove::new_page;
use crate::watch;

/// Trace from which pictures can be made.
pub(super) struct PictureSource {
    /// Name of the file.
    pub(super) name: String,
    pub(super) explorer: Explorer,
}

/// Page that is written at the end.
pub(super) struct NewPage<'p> {
    path: &'p Path,
    file: NewFile,
}

impl NewPage<'_> {
    /// Creates the file of the page before the comparison. If the file cannot be written, no time is lost.
    pub(super) fn create<'p>(path: &'p Path, inputs: &[PathBuf]) -> Result<NewPage<'p>, Failure> {
        let file = new_page(path, inputs)?;
        Ok(NewPage { path, file })
    }

    /// Makes the pictures of the traces before and after the change, and writes the page. Returns its size in bytes.
    pub(super) fn write(
        self,
        diff: &Diff,
        sides: [(&[PictureSource], &[Recording]); 2],
    ) -> Result<u64, Failure> {
        let [before, after] = sides.map(|(explored, recordings)| {
            let each = explored.iter().zip(recordings);
            each.map(|(explored, recording)| Source {
                name: &explored.name,
                explorer: &explored.explorer,
                recording,
            })
            .collect::<Vec<Source<'_>>>()
        });
        let comparison = Comparison::new(diff, &before, &after, watch::interrupted())?;
        let title = [&comparison.before, &comparison.after].map(|side| side.names.join(", "));
        let page = comparison_page(&title.join(" and "), &comparison)?;
        let written = self.file.file().write_all(page.as_bytes());
        written.map_err(|error| Failure::writing(self.path, &error))?;
        Ok(self.file.finish()?)
    }
}
