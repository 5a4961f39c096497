//! Documentation of views and functions, generated from the source code.

use std::fmt::Write;

use crate::functions::about;
use crate::views::VIEWS;
use crate::{Session, Settings, SqlError};

/// Returns the text of `docs/views.md`.
///
/// # Errors
/// Returns an error if a view is invalid.
pub fn reference() -> Result<String, SqlError> {
    let session = Session::new(Vec::new(), Settings::default())?;
    let mut text = String::from(
        "# Views and functions\n\
         \n\
         <!-- Written by `UPDATE_EXPECT=1 cargo test -p sql`; edit crates/sql/src. -->\n\
         \n\
         [`laglab sql`](sql.md) has these views and functions in addition to the [tables](tables.md).\n\
         A view is a named query and is used like a table.\n\
         \n\
         ## Functions\n\
         \n\
         The functions of [DataFusion](https://datafusion.apache.org/user-guide/sql/index.html) are\n\
         available too: `count`, `sum`, `avg`, `min`, `max`, `approx_percentile_cont`, `date_trunc`,\n\
         `regexp_like` and many more.\n\
         \n\
         | Function | Result |\n\
         |---|---|\n",
    );
    for about in about() {
        let _ = writeln!(text, "| `{}` | {} |", about.signature(), about.meaning);
    }
    for view in VIEWS {
        let _ = write!(text, "\n## {}\n\n{}\n\n", view.name, view.prose());
        text += "| Column | Type |\n|---|---|\n";
        for field in session.columns(view.name)?.fields() {
            let _ = writeln!(text, "| `{}` | {} |", field.name(), field.data_type());
        }
    }
    Ok(text)
}
