//! The interactive prompt of `laglab sql`, with history and completion.

use std::io::{self, Write};
use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Config, Context, Editor, Helper};
use tables::{Cache, Table};

use super::super::cache;
use super::{Answers, Failure};
use crate::output::{self, Columns, Side};
use crate::watch;

const PROMPT: &str = "laglab> ";

const HELP: &str = "\
Statements end with a semicolon and may span several lines. Other commands:

  .tables        list tables and views
  .schema NAME   list the columns of a table or view
  .functions     list the functions that laglab adds to SQL
  .help          print this help
  .quit          quit, as Ctrl-D

Tab completes names; Ctrl-C stops a query.
";

const KEYWORDS: &[&str] = &[
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CREATE",
    "DESC",
    "DISTINCT",
    "ELSE",
    "END",
    "EXPLAIN",
    "FROM",
    "GROUP",
    "HAVING",
    "IN",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "SELECT",
    "THEN",
    "UNION",
    "USING",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Runs the statements and commands that the user types, until .quit or Ctrl-D.
pub(super) fn run(answers: &Answers) -> Result<(), Failure> {
    let config = Config::builder().auto_add_history(true).build();
    let mut editor = Editor::with_config(config).map_err(terminal)?;
    editor.set_helper(Some(Names::new(answers)));
    let history = history_file();
    if let Some(history) = &history {
        // The error is ignored, because the file does not exist before the first use.
        let _ = editor.load_history(history);
    }
    writeln!(
        io::stdout(),
        "Statements end with a semicolon. Type .help for other commands."
    )?;
    loop {
        match editor.readline(PROMPT) {
            Ok(line) if matches!(line.trim(), ".quit" | ".exit") => break,
            Ok(line) => {
                match answer(answers, line.trim()) {
                    Ok(()) => {}
                    Err(Failure::Input(what)) => {
                        let what = output::Printable(&what);
                        writeln!(anstream::stderr(), "{what}")?;
                    }
                    Err(Failure::Interrupted) => writeln!(anstream::stderr(), "stopped")?,
                    Err(other) => return Err(other),
                }
                watch::forget();
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal(error)),
        }
    }
    if let Some(history) = &history {
        let _ = history.parent().map(std::fs::create_dir_all);
        // Errors are ignored, because the history is not essential.
        let _ = editor.save_history(history);
    }
    Ok(())
}

fn terminal(error: ReadlineError) -> Failure {
    match error {
        ReadlineError::Io(error) => Failure::Output(error),
        other => Failure::Input(other.to_string()),
    }
}

fn answer(answers: &Answers, line: &str) -> Result<(), Failure> {
    let mut out = output::for_people();
    match line
        .split_once(' ')
        .map_or((line, ""), |(word, rest)| (word, rest.trim()))
    {
        (".help", _) => out.write_all(HELP.as_bytes())?,
        (".tables", _) => {
            for name in names() {
                writeln!(out, "  {name}")?;
            }
        }
        (".functions", _) => {
            let mut columns = Columns::new(&[Side::Left, Side::Left]);
            for (signature, meaning) in sql::function_signatures() {
                columns.row([signature.as_str(), meaning]);
            }
            columns.write(&mut out)?;
        }
        (".schema", name) => {
            let mut columns = Columns::new(&[Side::Left, Side::Left]);
            for field in answers.session.columns(name)?.fields() {
                columns.row([field.name().clone(), field.data_type().to_string()]);
            }
            columns.write(&mut out)?;
        }
        (word, _) if word.starts_with('.') => {
            return Err(Failure::Input(format!(
                "unknown command {word}; type .help for a list"
            )));
        }
        _ => {
            drop(out);
            return answers.print(&sql::parse(line)?);
        }
    }
    out.flush()?;
    Ok(())
}

/// Returns the path of the query history, in the folder of the cache.
fn history_file() -> Option<PathBuf> {
    match cache::chosen() {
        Ok(Cache::Folder(folder)) => Some(folder.path().join("sql-history")),
        _ => None,
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    Table::ALL
        .iter()
        .map(|table| table.name())
        .chain(sql::view_names())
}

/// Names of tables, columns and functions that the Tab key completes.
struct Names(Vec<String>);

impl Names {
    fn new(answers: &Answers) -> Names {
        let mut all: Vec<String> = names().map(str::to_owned).collect();
        let columns = names().filter_map(|name| answers.session.columns(name).ok());
        all.extend(columns.flat_map(|schema| {
            let fields = schema.fields().iter().map(|field| field.name().clone());
            fields.collect::<Vec<_>>()
        }));
        all.extend(answers.session.function_names());
        all.extend(KEYWORDS.iter().map(|keyword| (*keyword).to_owned()));
        let commands = [".tables", ".schema", ".functions", ".help", ".quit"];
        all.extend(commands.map(str::to_owned));
        all.sort_unstable();
        all.dedup();
        Names(all)
    }

    /// Returns the offset at which the completed word starts, and the possible completions. The word ends at
    /// the offset `at`.
    fn complete(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = &line[..at];
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .map_or(0, |last| {
                last + before[last..].chars().next().map_or(1, char::len_utf8)
            });
        // In `r.cpu` only the column name `cpu` is completed. But `.tables` is completed as one word.
        let start = match before[start..].rfind('.') {
            Some(dot) if dot > 0 => start + dot + 1,
            _ => start,
        };
        let word = &before[start..];
        if word.is_empty() {
            return (start, Vec::new());
        }
        let matches = |name: &&String| {
            name.get(..word.len())
                .is_some_and(|beginning| beginning.eq_ignore_ascii_case(word))
        };
        (start, self.0.iter().filter(matches).cloned().collect())
    }
}

impl Completer for Names {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(Names::complete(self, line, at))
    }
}

impl Validator for Names {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_complete(context.input()) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

/// Returns true if the input is a complete statement or command.
fn is_complete(text: &str) -> bool {
    let text = text.trim();
    text.is_empty() || text.starts_with('.') || text.ends_with(';')
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}

impl Helper for Names {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_where_they_begin() {
        let names = Names(
            [".tables", "SELECT", "cpu", "cpu_runs"]
                .map(str::to_owned)
                .into(),
        );
        let complete = |line: &str| names.complete(line, line.len());
        assert_eq!(complete("sel"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(complete("SELECT cpu_").1, ["cpu_runs"]);
        assert_eq!(
            complete("SELECT sum(r.cpu"),
            (13, vec!["cpu".to_owned(), "cpu_runs".to_owned()])
        );
        assert_eq!(complete(".ta"), (0, vec![".tables".to_owned()]));
        assert_eq!(complete("SELECT "), (7, vec![]));
        assert_eq!(complete("SELECT 'é").1, Vec::<String>::new());
    }

    #[test]
    fn statements_end_with_a_semicolon() {
        assert!(is_complete("SELECT 1;\n"));
        assert!(is_complete(".tables"));
        assert!(is_complete(""));
        assert!(!is_complete("SELECT 1"));
    }
}
