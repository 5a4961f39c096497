//! The documentation of views and functions, from their declarations.

use std::fmt::Write;

use crate::functions::about;
use crate::views::VIEWS;
use crate::{Session, Settings, SqlError};

/// Writes `docs/views.md`.
///
/// # Errors
/// If a view does not plan.
pub fn reference() -> Result<String, SqlError> {
    let session = Session::new(Vec::new(), Settings::default())?;
    let mut text = String::from(
        "# Views and functions\n\
         \n\
         <!-- Written by `UPDATE_EXPECT=1 cargo test -p sql`; edit crates/sql/src. -->\n\
         \n\
         What [`laglab sql`](sql.md) knows besides the [tables](tables.md). A view is a query with a\n\
         name: it can be asked like a table.\n\
         \n\
         ## Functions\n\
         \n\
         Besides these there are [DataFusion's](https://datafusion.apache.org/user-guide/sql/index.html):\n\
         `count`, `sum`, `avg`, `min`, `max`, `approx_percentile_cont`, `date_trunc`, `regexp_like` and\n\
         many more.\n\
         \n\
         | Function | Gives |\n\
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
