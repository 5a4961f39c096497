//! Views: frequent queries, one SQL file each.
//!
//! The comment at the start of a file is the documentation of the view.

/// A view: a named query that is used like a table.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    /// SQL text of the view, with the comment at its start.
    pub(crate) sql: &'static str,
}

macro_rules! views {
    ($($name:literal,)+) => {
        /// All views, in the order in which they are documented.
        pub(crate) static VIEWS: &[View] = &[
            $(View { name: $name, sql: include_str!(concat!($name, ".sql")) },)+
        ];
    };
}

views! {
    "processes_named",
    "cpu_by_process",
    "cpu_by_thread",
    "cpu_by_priority",
    "cpu_by_processor",
    "cpu_usage_precise",
    "cpu_usage_sampled",
    "cpu_sampled_by_module",
    "ready_waits",
    "who_ran_instead",
    "waits_by_reason",
    "readied_by",
    "context_switch_rate",
    "rank_over_time",
    "dpc_isr",
    "dpc_isr_by_module",
    "disk_by_process",
    "hard_faults_by_process",
}

impl View {
    pub(crate) fn find(name: &str) -> Option<&'static View> {
        VIEWS.iter().find(|view| view.name == name)
    }

    /// Returns the comment at the start of the file, which is the documentation.
    pub(crate) fn prose(&self) -> String {
        let lines = self.sql.lines().map_while(|line| line.strip_prefix("--"));
        let lines: Vec<&str> = lines.map(str::trim).collect();
        lines.join("\n")
    }
}

/// Returns the names and the documentation of all views.
pub fn views() -> impl Iterator<Item = (&'static str, String)> {
    VIEWS.iter().map(|view| (view.name, view.prose()))
}

/// Returns the names of all views.
pub fn view_names() -> impl Iterator<Item = &'static str> {
    VIEWS.iter().map(|view| view.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_has_a_description() {
        for view in VIEWS {
            assert!(view.prose().len() > 40, "{} has no description", view.name);
        }
    }

    #[test]
    fn no_view_has_the_name_of_a_table() {
        for view in VIEWS {
            assert!(view.name.parse::<tables::Table>().is_err(), "{}", view.name);
        }
    }
}
