//! Grammar of the random statements.

use arrow_schema::DataType;
use testdata::Rng;

/// Kind of a value. Most generated expressions have the kind that their context needs, so most statements are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Float,
    Text,
    Boolean,
    Time,
    List,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Integer,
        Kind::Float,
        Kind::Text,
        Kind::Boolean,
        Kind::Time,
        Kind::List,
    ];

    pub(crate) fn of(data_type: &DataType) -> Kind {
        match data_type {
            DataType::Boolean => Kind::Boolean,
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Kind::Float,
            DataType::Timestamp(..) => Kind::Time,
            DataType::List(_) => Kind::List,
            other if other.is_integer() => Kind::Integer,
            _ => Kind::Text,
        }
    }
}

/// Table or view, and its columns.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) columns: Columns,
}

type Column = (String, Kind);
type Columns = Vec<Column>;

/// Integers at which functions and operators change their behaviour.
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "7",
    "31",
    "1000",
    "65536",
    "2147483647",
    "-2147483648",
    "4294967296",
    "1000000000000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "NULL",
];

const FLOATS: &[&str] = &[
    "0.0",
    "-0.0",
    "1.5",
    "1e-300",
    "1e308",
    "-1e308",
    "CAST('NaN' AS DOUBLE)",
    "CAST('inf' AS DOUBLE)",
    "NULL",
    "CAST(0.1 AS DECIMAL(38, 30))",
];

const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'%'",
    "'_%a'",
    "'(a|b)*'",
    "'['",
    "'\\\\'",
    "'1e9999'",
    "'-5'",
    "'2026-02-30'",
    "'é😀\u{202e}'",
    "''''",
    "NULL",
];

/// Functions whose results can be large.
const GROWING: &[&str] = &[
    "repeat('ab', {})",
    "lpad('a', {}, 'xy')",
    "rpad('a', {})",
    "array_repeat(1, {})",
    "array_repeat(array_repeat('a', {}), {})",
    "array_resize(make_array(1), {}, 0)",
    "generate_series(1, {})",
    "generate_series({}, {}, {})",
    "range({})",
    "range({}, {}, {})",
    "replace(repeat('a', 1000), 'a', repeat('b', {}))",
    "regexp_replace(repeat('a', 1000), 'a*?', repeat('b', {}), 'g')",
    "concat(repeat('a', {}), repeat('b', {}))",
    "concat_ws(repeat(',', {}), 'a', 'b', 'c')",
    "overlay('abc' PLACING repeat('x', {}) FROM {})",
    "translate('abc', 'abc', repeat('x', {}))",
    "array_concat(array_repeat(1, {}), array_repeat(2, {}))",
    "array_to_string(array_repeat('abc', {}), repeat(',', {}))",
    "string_to_array(repeat('a,', {}), ',')",
    "flatten(array_repeat(array_repeat(1, {}), {}))",
    "power({}, {})",
    "factorial({})",
    "gcd({}, {})",
    "lcm({}, {})",
    "chr({})",
    "to_hex({})",
    "substr('abc', {}, {})",
    "left('abc', {})",
    "split_part('a,b', ',', {})",
    "round(1.5, {})",
    "trunc(1.5, {})",
    "to_timestamp({})",
    "from_unixtime({})",
    "date_bin(INTERVAL '{} nanoseconds', utc({}))",
    "utc({}) + INTERVAL '{} months'",
    "array_slice(range(10), {}, {}, {})",
    "array_element(range(10), {})",
    "range(utc(0), utc({}), INTERVAL '1 nanosecond')",
    "bucket({}, {})",
    "CAST({} AS DECIMAL(38, 38)) * CAST({} AS DECIMAL(38, 0))",
    "CAST({} AS SMALLINT) << {}",
    "{} % {}",
    "{} / {}",
    "- ({})",
    "abs({})",
];

// Patterns of expressions, one list for each kind. A letter in braces is the place of a part: an `i`nteger, `f`loat,
// `t`ext, `b`oolean, mo`m`ent or `l`ist, or a sub`q`uery.
const INTEGER_PATTERNS: &[&str] = &[
    "({i} + {i})",
    "({i} - {i})",
    "({i} * {i})",
    "({i} / {i})",
    "({i} % {i})",
    "(- {i})",
    "length({t})",
    "CAST({f} AS BIGINT)",
    "CAST({t} AS INTEGER)",
    "TRY_CAST({t} AS BIGINT)",
    "abs({i})",
    "coalesce({i}, {i})",
    "nullif({i}, {i})",
    "CASE WHEN {b} THEN {i} ELSE {i} END",
    "strpos({t}, {t})",
    "array_length({l})",
    "date_part('hour', {m})",
    "({i} & {i})",
    "({i} << {i})",
    "greatest({i}, {i})",
    "ascii({t})",
    "{q}",
    "array_position({l}, {i})",
    "bucket({i}, {i})",
    "extract(epoch FROM {m})",
];

const FLOAT_PATTERNS: &[&str] = &[
    "({f} * {f})",
    "({i} / {f})",
    "sqrt({f})",
    "ln({i})",
    "power({f}, {i})",
    "CAST({t} AS DOUBLE)",
    "round({f}, {i})",
    "CAST({i} AS DECIMAL(20, 5))",
    "ms({i})",
    "exp({f})",
    "log({f}, {f})",
    "nanvl({f}, {f})",
    "random()",
];

const TEXT_PATTERNS: &[&str] = &[
    "({t} || {t})",
    "upper({t})",
    "substr({t}, {i}, {i})",
    "repeat({t}, {i})",
    "lpad({t}, {i}, {t})",
    "replace({t}, {t}, {t})",
    "regexp_replace({t}, {t}, {t}, 'g')",
    "concat({t}, {i}, {f})",
    "CAST({l} AS VARCHAR)",
    "CAST({m} AS VARCHAR)",
    "process({i})",
    "module({i})",
    "thread({i})",
    "to_char({m}, {t})",
    "reverse({t})",
    "split_part({t}, {t}, {i})",
    "translate({t}, {t}, {t})",
    "initcap({t})",
    "chr({i})",
    "to_hex({i})",
    "array_to_string({l}, {t})",
    "symbol({i}, {i})",
];

const BOOLEAN_PATTERNS: &[&str] = &[
    "({i} = {i})",
    "({f} < {f})",
    "({t} <> {t})",
    "({m} >= {m})",
    "({b} AND {b})",
    "({b} OR {b})",
    "(NOT {b})",
    "({i} IN ({i}, {i}, 5))",
    "({i} BETWEEN {i} AND {i})",
    "({t} LIKE {t})",
    "({t} ~ {t})",
    "({t} ILIKE {t})",
    "({t} SIMILAR TO {t})",
    "({i} IS NULL)",
    "({b} IS NOT TRUE)",
    "({i} IS DISTINCT FROM {i})",
    "EXISTS {q}",
    "({i} IN {q})",
    "({i} NOT IN {q})",
    "array_has({l}, {i})",
    "starts_with({t}, {t})",
    "({i} > ALL {q})",
    "regexp_like({t}, {t})",
];

const TIME_PATTERNS: &[&str] = &[
    "({m} + INTERVAL '1 day')",
    "({m} - INTERVAL '9999999 months')",
    "date_trunc('day', {m})",
    "to_timestamp({i})",
    "to_timestamp({t})",
    "CAST({t} AS TIMESTAMP)",
    "date_bin(INTERVAL '1 minute', {m})",
    "now()",
    "CAST({i} AS TIMESTAMP)",
    "coalesce({m}, {m})",
];

const LIST_PATTERNS: &[&str] = &[
    "make_array({i}, {i})",
    "range({i})",
    "array_repeat({i}, {i})",
    "array_append({l}, {i})",
    "array_concat({l}, {l})",
    "array_sort({l})",
    "array_distinct({l})",
    "string_to_array({t}, {t})",
    "array_slice({l}, {i}, {i})",
    "flatten({l})",
    "array_remove_all({l}, {i})",
    "array_resize({l}, {i}, {i})",
    "array_union({l}, {l})",
    "array_except({l}, {l})",
    "array_reverse({l})",
    "array_replace_all({l}, {i}, {i})",
    "generate_series({i}, {i}, {i})",
];

/// Generator of one random statement.
pub(crate) struct Grammar<'g> {
    rng: Rng,
    sources: &'g [Source],
    functions: &'g [String],
    /// Number of names that the statement has given to tables.
    names: usize,
}

impl<'g> Grammar<'g> {
    pub(crate) fn new(seed: u64, sources: &'g [Source], functions: &'g [String]) -> Grammar<'g> {
        Grammar {
            rng: Rng(seed),
            sources,
            functions,
            names: 0,
        }
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.rng.below(of.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.rng.below(100) < percent
    }

    fn kind(&mut self) -> Kind {
        Kind::ALL[self.rng.below(Kind::ALL.len())]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("t{}", self.names)
    }

    /// Returns a table of the session, which an earlier statement may have created.
    fn created(&mut self) -> String {
        format!("made{}", self.rng.below(4))
    }

    pub(crate) fn statement(&mut self) -> String {
        match self.rng.below(20) {
            0 => self.chain(),
            1 => self.ladder(),
            2 => self.change(),
            3 => self.garbage(),
            4 => self.growing(),
            5 => self.recursive(),
            6 => {
                let analyze = self.one(&[
                    "",
                    "VERBOSE ",
                    "ANALYZE ",
                    "FORMAT TREE ",
                    "ANALYZE VERBOSE ",
                ]);
                format!("EXPLAIN {analyze}{}", self.query(2).0)
            }
            7 => format!("SELECT * FROM {}", self.created()),
            8 => {
                let arguments = self.rng.below(4);
                format!("SELECT {}", self.any_call(arguments, &[]))
            }
            _ => self.query(2).0,
        }
    }

    /// Returns a statement with a long or deep chain of one construction.
    fn chain(&mut self) -> String {
        let length = [5, 50, 400, 3_000, 70_000][self.rng.below(5)];
        let repeated = |part: &str| part.repeat(length);
        let numbered = |part: &str| {
            let parts = (0..length).map(|index| part.replace("{}", &index.to_string()));
            parts.collect::<String>()
        };
        match self.rng.below(20) {
            0 => format!("SELECT 1{}", repeated("+1")),
            1 => format!(
                "SELECT count(*) FROM samples WHERE cpu = 1{}",
                numbered(" OR thread_id = {}")
            ),
            2 => format!("SELECT 'a'{}", repeated(" || 'a'")),
            3 => format!("SELECT 1{}", repeated(" UNION ALL SELECT 1")),
            4 => format!("SELECT 1{}", repeated(" UNION SELECT cpu FROM samples")),
            5 => format!("SELECT {}TRUE", repeated("NOT ")),
            6 => format!("SELECT {}1{}", repeated("abs("), repeated(")")),
            7 => format!("SELECT {}1{}", repeated("("), repeated(")")),
            8 => format!("SELECT {}1", repeated("- ")),
            9 => format!("SELECT cpu IN (0{}) FROM samples", numbered(", {}")),
            10 => format!(
                "SELECT CASE cpu {} END FROM samples",
                numbered("WHEN {} THEN {} ")
            ),
            11 => format!(
                "SELECT {}1{}",
                repeated("CASE WHEN TRUE THEN "),
                repeated(" END")
            ),
            12 => format!("SELECT 1{}", numbered(", {} AS a{}")),
            13 => format!("SELECT count(*) FROM cpus{}", numbered(", cpus b{}")),
            14 => format!(
                "SELECT count(*) FROM cpus{}",
                numbered(" JOIN cpus b{} USING (cpu)")
            ),
            15 => format!(
                "SELECT count(*) FROM {}cpus{}",
                repeated("(SELECT * FROM "),
                numbered(") b{}")
            ),
            16 => format!("VALUES (1){}", numbered(", ({})")),
            17 => format!("SELECT '{}'", repeated("long ")),
            18 => format!("SELECT 1{}", numbered("; SELECT {}")),
            _ => format!("SELECT [1{}]", numbered(", {}")),
        }
    }

    /// Returns a statement in several steps. Each step uses the previous step twice.
    fn ladder(&mut self) -> String {
        let steps = [3, 8, 20, 40][self.rng.below(4)];
        let (step, last) = match self.rng.below(9) {
            0 => (
                "SELECT * FROM {} UNION ALL SELECT * FROM {}",
                "SELECT count(*) FROM {}",
            ),
            1 => (
                "SELECT a + a AS a FROM {}",
                "SELECT a FROM {} WHERE a > 0 AND a < 9",
            ),
            2 => ("SELECT x.a FROM {} x, {} y", "SELECT count(*) FROM {}"),
            3 => (
                "SELECT a FROM {} WHERE a IN (SELECT a FROM {})",
                "SELECT count(*) FROM {}",
            ),
            4 => (
                "SELECT x.a FROM {} x JOIN {} y USING (a)",
                "SELECT count(*) FROM {}",
            ),
            5 => (
                "SELECT (SELECT max(a) FROM {}) AS a FROM {}",
                "SELECT count(*) FROM {}",
            ),
            6 => (
                "SELECT CASE WHEN a > 0 THEN a ELSE -a END AS a FROM {}",
                "SELECT a FROM {} ORDER BY a",
            ),
            7 => (
                "SELECT a, count(*) AS b FROM {} GROUP BY a HAVING max(a) > 0",
                "SELECT a FROM {}",
            ),
            _ => (
                "SELECT sum(a) OVER (ORDER BY a) AS a FROM {}",
                "SELECT max(a) FROM {} WHERE a > 0",
            ),
        };
        let named = |text: &str, index: usize| text.replace("{}", &format!("s{index}"));
        let first = self.one(&["SELECT 1 AS a", "SELECT cpu AS a FROM cpus"]);
        if self.chance(30) {
            let parts = (1..steps)
                .map(|at| format!("; CREATE OR REPLACE VIEW s{at} AS {}", named(step, at - 1)));
            let views: String = parts.collect();
            return format!(
                "CREATE OR REPLACE VIEW s0 AS {first}{views}; {}",
                named(last, steps - 1)
            );
        }
        let parts = (1..steps).map(|at| format!(", s{at} AS ({})", named(step, at - 1)));
        let parts: String = parts.collect();
        format!("WITH s0 AS ({first}){parts} {}", named(last, steps - 1))
    }

    /// Returns a statement that creates or drops something.
    fn change(&mut self) -> String {
        let name = self.created();
        let query = self.query(1).0;
        match self.rng.below(9) {
            0 | 1 => format!("CREATE OR REPLACE TABLE {name} AS {query}"),
            2 => format!("CREATE TABLE IF NOT EXISTS {name} AS {query}"),
            3 => format!("CREATE OR REPLACE VIEW {name} AS {query}"),
            4 => format!("DROP TABLE IF EXISTS {name}"),
            5 => format!("DROP VIEW {name}"),
            6 => format!(
                "CREATE OR REPLACE VIEW {name} AS SELECT * FROM {}",
                self.created()
            ),
            7 => format!("CREATE TABLE {name} (a BIGINT, b VARCHAR)"),
            _ => {
                let other = self.one(&[
                    "DROP TABLE samples",
                    "CREATE VIEW cpus AS SELECT 1",
                    "INSERT INTO made0 VALUES (1)",
                    "DELETE FROM samples",
                    "UPDATE samples SET cpu = 1",
                    "COPY samples TO 'a.csv'",
                    "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '/etc/passwd'",
                    "CREATE SCHEMA s",
                    "CREATE DATABASE d",
                    "SET datafusion.execution.batch_size = 1",
                    "SHOW TABLES",
                    "DESCRIBE samples",
                    "BEGIN",
                    "PREPARE p AS SELECT $1",
                    "EXECUTE p(1)",
                    "CREATE FUNCTION f() RETURNS INT RETURN 1",
                    "TRUNCATE TABLE samples",
                    "SELECT $1",
                    "SELECT * FROM '/etc/passwd'",
                    "USE a",
                    "RESET datafusion.execution.batch_size",
                    "EXPLAIN EXPLAIN SELECT 1",
                    "CREATE INDEX i ON samples (cpu)",
                ]);
                other.to_owned()
            }
        }
    }

    /// Returns a query in which some words were removed, doubled or moved.
    fn garbage(&mut self) -> String {
        let text = self.query(1).0;
        let mut words: Vec<&str> = text.split(' ').collect();
        for _ in 0..=self.rng.below(3) {
            let (one, other) = (self.rng.below(words.len()), self.rng.below(words.len()));
            match self.rng.below(3) {
                0 if words.len() > 1 => {
                    words.remove(one);
                }
                1 => words.insert(one, words[other]),
                _ => words.swap(one, other),
            }
        }
        words.join(" ")
    }

    /// Returns a query of functions whose results can be large.
    fn growing(&mut self) -> String {
        let pattern = self.one(GROWING);
        let mut call = String::new();
        for (index, part) in pattern.split("{}").enumerate() {
            if index > 0 {
                call += if self.chance(30) {
                    self.one(&["cpu", "time_ns", "cpu * 1000000"])
                } else {
                    self.one(INTEGERS)
                };
            }
            call += part;
        }
        let outer = self.one(&[
            "{}",
            "length({})",
            "count({})",
            "max({})",
            "array_agg({})",
            "unnest({})",
            "md5({})",
        ]);
        let call = outer.replace("{}", &call);
        match self.rng.below(4) {
            0 if !call.contains("cpu") && !call.contains("time_ns") => format!("SELECT {call}"),
            1 => format!("SELECT cpu, {call} FROM samples GROUP BY cpu"),
            2 => format!("SELECT * FROM samples WHERE CAST({call} AS VARCHAR) > 'a' LIMIT 5"),
            _ => format!("SELECT {call} FROM samples"),
        }
    }

    /// Returns a recursive query. Some of these queries never end.
    fn recursive(&mut self) -> String {
        let limit = [
            "",
            " WHERE n < 10",
            " WHERE n < 100000",
            " WHERE n > 0",
            " LIMIT 5",
        ][self.rng.below(5)];
        let step = self.one(&[
            "n + 1",
            "n * 2",
            "n",
            "-n",
            "n + (SELECT count(*) FROM cpus)",
        ]);
        let union = self.one(&["UNION ALL", "UNION"]);
        let from = self.one(&[
            "r",
            "r, cpus",
            "r JOIN samples ON r.n = samples.cpu",
            "r, r AS q",
        ]);
        let column = if from.contains('q') {
            step.replace('n', "r.n")
        } else {
            step.to_owned()
        };
        let last = self.one(&[
            "SELECT * FROM r",
            "SELECT count(*) FROM r",
            "SELECT n FROM r LIMIT 3",
            "SELECT array_agg(n) FROM r",
        ]);
        format!(
            "WITH RECURSIVE r(n) AS (SELECT 1 {union} SELECT {column} FROM {from}{limit}) {last}"
        )
    }

    /// Returns a query and its columns.
    fn query(&mut self, depth: usize) -> (String, Columns) {
        let (mut text, mut columns) = self.select(depth);
        if depth > 0 && self.chance(12) {
            let name = self.name();
            let renamed: Columns = columns
                .iter()
                .map(|(column, kind)| (format!("{name}.{column}"), *kind))
                .collect();
            let (items, new) = self.items(&renamed, depth - 1);
            text = format!("WITH {name} AS ({text}) SELECT {items} FROM {name}");
            columns = new;
        }
        if depth > 0 && self.chance(12) {
            let union = self.one(&["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL"]);
            let other = self.select(depth - 1).0;
            text = format!("({text}) {union} ({other})");
        }
        if self.chance(25) {
            let column = 1 + self.rng.below(columns.len());
            let order = self.one(&["", " DESC", " NULLS FIRST", ", 1"]);
            text += &format!(" ORDER BY {column}{order}");
        }
        if self.chance(40) {
            let limit = self.one(&["0", "1", "10", "1000", "9223372036854775807", "NULL", "-1"]);
            text += &format!(" LIMIT {limit}");
            if self.chance(20) {
                text += &format!(" OFFSET {}", self.one(&["0", "5", "9223372036854775807"]));
            }
        }
        (text, columns)
    }

    fn select(&mut self, depth: usize) -> (String, Columns) {
        let (from, scope) = self.from(depth);
        let condition = if self.chance(50) {
            format!(" WHERE {}", self.expression(Kind::Boolean, &scope, depth))
        } else {
            String::new()
        };
        if self.chance(25) {
            let kind = self.kind();
            let key = self.expression(kind, &scope, 1);
            let other = self.kind();
            let second = self.expression(other, &scope, 0);
            let group = match self.rng.below(5) {
                0 => format!("ROLLUP ({key}, {second})"),
                1 => format!("CUBE ({key}, {second})"),
                2 => format!("GROUPING SETS (({key}), ())"),
                _ => key.clone(),
            };
            let (first, second) = (self.aggregate(&scope, depth), self.aggregate(&scope, depth));
            let having = if self.chance(30) {
                format!(" HAVING {} > 1", self.aggregate(&scope, 0))
            } else {
                String::new()
            };
            let text = format!(
                "SELECT {key} AS c0, {first} AS c1, {second} AS c2 FROM {from}{condition} GROUP BY {group}{having}"
            );
            let columns = vec![
                ("c0".to_owned(), kind),
                ("c1".to_owned(), Kind::Integer),
                ("c2".to_owned(), Kind::Integer),
            ];
            return (text, columns);
        }
        let (items, columns) = self.items(&scope, depth);
        let distinct = self.one(&["", "", "", "DISTINCT "]);
        (
            format!("SELECT {distinct}{items} FROM {from}{condition}"),
            columns,
        )
    }

    /// Returns a list of selected expressions, and their names.
    fn items(&mut self, scope: &[Column], depth: usize) -> (String, Columns) {
        let mut texts = Vec::new();
        let mut columns = Columns::new();
        for index in 0..=self.rng.below(3) {
            let kind = self.kind();
            let text = match self.rng.below(8) {
                0 => self.window(scope, depth),
                1 => {
                    let arguments = self.rng.below(4);
                    self.any_call(arguments, scope)
                }
                _ => self.expression(kind, scope, depth),
            };
            texts.push(format!("{text} AS c{index}"));
            columns.push((format!("c{index}"), kind));
        }
        (texts.join(", "), columns)
    }

    /// Returns a table expression and its columns.
    fn from(&mut self, depth: usize) -> (String, Columns) {
        let (left, mut columns) = self.table(depth);
        if depth == 0 || self.chance(65) {
            return (left, columns);
        }
        let (right, others) = self.table(depth - 1);
        columns.extend(others);
        let join = self.one(&[
            "JOIN",
            "LEFT JOIN",
            "RIGHT JOIN",
            "FULL JOIN",
            "LEFT SEMI JOIN",
            "LEFT ANTI JOIN",
        ]);
        let text = match self.rng.below(6) {
            0 => format!("{left}, {right}"),
            1 => format!("{left} CROSS JOIN {right}"),
            2 => format!("{left} NATURAL JOIN {right}"),
            _ => format!(
                "{left} {join} {right} ON {}",
                self.expression(Kind::Boolean, &columns, 1)
            ),
        };
        (text, columns)
    }

    fn table(&mut self, depth: usize) -> (String, Columns) {
        let name = self.name();
        let (text, columns): (String, Columns) = match self.rng.below(10) {
            0 if depth > 0 => {
                let (query, columns) = self.query(depth - 1);
                (format!("({query})"), columns)
            }
            1 => {
                let (low, high) = (self.one(INTEGERS), self.one(INTEGERS));
                let step = self.one(&["", ", 1", ", -1", ", 0", ", 9223372036854775807"]);
                let function = self.one(&["generate_series", "range"]);
                (
                    format!("{function}({low}, {high}{step})"),
                    vec![("value".to_owned(), Kind::Integer)],
                )
            }
            2 => {
                let values = (self.literal(Kind::Integer), self.literal(Kind::Text));
                (
                    format!("(SELECT {} AS a, {} AS b)", values.0, values.1),
                    vec![
                        ("a".to_owned(), Kind::Integer),
                        ("b".to_owned(), Kind::Text),
                    ],
                )
            }
            3 => {
                let list = self.expression(Kind::List, &[], 1);
                (
                    format!("(SELECT unnest({list}) AS a)"),
                    vec![("a".to_owned(), Kind::Integer)],
                )
            }
            _ => {
                let source = &self.sources[self.rng.below(self.sources.len())];
                (source.name.clone(), source.columns.clone())
            }
        };
        let columns = columns
            .into_iter()
            .map(|(column, kind)| (format!("{name}.{column}"), kind));
        (format!("{text} AS {name}"), columns.collect())
    }

    fn literal(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Integer => self.one(INTEGERS).to_owned(),
            Kind::Float => self.one(FLOATS).to_owned(),
            Kind::Text if self.chance(3) => format!("'{}'", "x".repeat(40_000)),
            Kind::Text => self.one(TEXTS).to_owned(),
            Kind::Boolean => self.one(&["TRUE", "FALSE", "NULL"]).to_owned(),
            Kind::Time => format!("utc({})", self.one(INTEGERS)),
            Kind::List => self
                .one(&[
                    "[1, 2, NULL]",
                    "[]",
                    "make_array('a')",
                    "range(5)",
                    "[[1], [2, 3]]",
                    "NULL",
                ])
                .to_owned(),
        }
    }

    fn leaf(&mut self, kind: Kind, scope: &[Column]) -> String {
        let fitting: Vec<&String> = scope
            .iter()
            .filter(|(_, found)| *found == kind)
            .map(|(name, _)| name)
            .collect();
        if fitting.is_empty() || self.chance(25) {
            self.literal(kind)
        } else {
            fitting[self.rng.below(fitting.len())].clone()
        }
    }

    fn expression(&mut self, kind: Kind, scope: &[Column], depth: usize) -> String {
        if depth == 0 || self.chance(30) {
            return self.leaf(kind, scope);
        }
        let patterns = match kind {
            Kind::Integer => INTEGER_PATTERNS,
            Kind::Float => FLOAT_PATTERNS,
            Kind::Text => TEXT_PATTERNS,
            Kind::Boolean => BOOLEAN_PATTERNS,
            Kind::Time => TIME_PATTERNS,
            Kind::List => LIST_PATTERNS,
        };
        let pattern = self.one(patterns);
        let mut text = String::new();
        let mut rest = pattern;
        while let Some((before, place)) = rest.split_once('{') {
            let (kind, after) = place.split_once('}').expect("braces are closed");
            text += before;
            text += &match kind {
                "i" => self.expression(Kind::Integer, scope, depth - 1),
                "f" => self.expression(Kind::Float, scope, depth - 1),
                "t" => self.expression(Kind::Text, scope, depth - 1),
                "b" => self.expression(Kind::Boolean, scope, depth - 1),
                "m" => self.expression(Kind::Time, scope, depth - 1),
                "l" => self.expression(Kind::List, scope, depth - 1),
                _ => self.subquery(scope),
            };
            rest = after;
        }
        text + rest
    }

    /// Returns a subquery with one column of integers, which may depend on the query around it.
    fn subquery(&mut self, scope: &[Column]) -> String {
        let (table, own) = self.table(0);
        let mut all = own.clone();
        all.extend(scope.iter().cloned());
        let condition = self.expression(Kind::Boolean, &all, 1);
        let value = self.leaf(Kind::Integer, &own);
        let item = self
            .one(&["max({})", "{}", "count({})"])
            .replace("{}", &value);
        let limit = self.one(&["", " LIMIT 1"]);
        format!("(SELECT {item} FROM {table} WHERE {condition}{limit})")
    }

    fn aggregate(&mut self, scope: &[Column], depth: usize) -> String {
        let patterns = [
            "count(*)",
            "count(DISTINCT {})",
            "sum({})",
            "avg({})",
            "min({})",
            "max({})",
            "array_agg({})",
            "string_agg(CAST({} AS VARCHAR), ',')",
            "stddev({})",
            "median({})",
            "approx_distinct({})",
            "approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY {})",
            "bit_xor({})",
            "sum({}) FILTER (WHERE TRUE)",
            "array_agg(DISTINCT {})",
            "first_value({} ORDER BY {})",
            "corr({}, {})",
            "sum(DISTINCT {})",
            "nth_value({}, 2 ORDER BY {})",
            "covar_pop({}, {})",
            "var_samp({})",
            "grouping({})",
            "bool_and({} > 0)",
            "regr_slope({}, {})",
        ];
        let kind = if self.chance(70) {
            Kind::Integer
        } else {
            self.kind()
        };
        let value = self.expression(kind, scope, depth.min(1));
        self.one(&patterns).replace("{}", &value)
    }

    fn window(&mut self, scope: &[Column], depth: usize) -> String {
        let call = if self.chance(50) {
            self.aggregate(scope, depth)
        } else {
            let value = self.leaf(Kind::Integer, scope);
            let number = self.one(INTEGERS);
            self.one(&[
                "row_number()",
                "rank()",
                "ntile({n})",
                "lag({}, {n})",
                "lead({}, {n}, 5)",
                "nth_value({}, {n})",
                "first_value({})",
                "cume_dist()",
            ])
            .replace("{}", &value)
            .replace("{n}", number)
        };
        let (partition, order) = (
            self.leaf(Kind::Integer, scope),
            self.leaf(Kind::Integer, scope),
        );
        let frame = self.one(&[
            "",
            " ROWS BETWEEN 3 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN 9223372036854775807 PRECEDING AND 9223372036854775807 FOLLOWING",
            " RANGE BETWEEN 10 PRECEDING AND 10 FOLLOWING",
            " RANGE BETWEEN 9223372036854775807 PRECEDING AND 18446744073709551615 FOLLOWING",
            " GROUPS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING",
            " ROWS BETWEEN 5 FOLLOWING AND 3 PRECEDING",
        ]);
        if self.chance(50) {
            format!("{call} OVER (PARTITION BY {partition} ORDER BY {order}{frame})")
        } else {
            format!("{call} OVER (ORDER BY {order}{frame})")
        }
    }

    /// Returns a call of any function with any arguments.
    fn any_call(&mut self, arguments: usize, scope: &[Column]) -> String {
        let function = &self.functions[self.rng.below(self.functions.len())];
        let arguments = (0..arguments).map(|_| {
            let kind = self.kind();
            self.leaf(kind, scope)
        });
        let arguments: Vec<String> = arguments.collect();
        format!("{function}({})", arguments.join(", "))
    }
}
