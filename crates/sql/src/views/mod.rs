//! Views: questions that are asked often, in SQL, one per file.
//!
//! The comment at a file's beginning is the view's documentation.

/// A view.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) name: &'static str,
    /// Its query, with the comment.
    pub(crate) sql: &'static str,
}

macro_rules! views {
    ($($name:literal,)+) => {
        /// All views, in the order of their documentation.
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

    /// The comment at its beginning.
    pub(crate) fn prose(&self) -> String {
        let lines = self.sql.lines().map_while(|line| line.strip_prefix("--"));
        let lines: Vec<&str> = lines.map(str::trim).collect();
        lines.join("\n")
    }
}

/// All views: their names, and what they are.
pub fn views() -> impl Iterator<Item = (&'static str, String)> {
    VIEWS.iter().map(|view| (view.name, view.prose()))
}

/// The names of all views.
pub fn view_names() -> impl Iterator<Item = &'static str> {
    VIEWS.iter().map(|view| view.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_says_what_it_is() {
        for view in VIEWS {
            assert!(view.prose().len() > 40, "{} has no prose", view.name);
        }
    }

    #[test]
    fn no_view_has_a_tables_name() {
        for view in VIEWS {
            assert!(view.name.parse::<tables::Table>().is_err(), "{}", view.name);
        }
    }
}
