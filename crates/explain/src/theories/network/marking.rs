//! Do packets carry marks of quality of service?

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tables::{PacketsView, StoreError, Table};

use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted,
    listed,
};

/// Marks (DSCP) of packets sent. What a policy asks for is not in a trace: it tells what is, and
/// judges nothing.
pub(crate) struct Marking;

static ABOUT: About = About {
    id: "packet-marking",
    question: "Do packets sent carry marks of quality of service (DSCP)?",
    tables: &[Table::Packets],
    sources: &[
        Source {
            title: "PC-Tuning: How can you verify if a DSCP QoS policy is working?",
            url: "",
        },
        Source {
            title: "Microsoft: Quality of Service (QoS) Policy",
            url: "https://learn.microsoft.com/windows-server/networking/technologies/qos/qos-policy-top",
        },
    ],
};

/// Packets sent by a process: row and id of it, the mark, how many, how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    process_row: Option<u32>,
    process_id: Option<u32>,
    dscp: u8,
    packets: i64,
    bytes: i64,
}

impl Theory for Marking {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        if !case.has(Table::Packets)? {
            let missing = "no packets were captured".to_owned();
            return Ok(Outcome::NotRecorded(missing));
        }
        let (sent, others) = sent(case)?;
        if sent.is_empty() {
            return Ok(match others {
                Others {
                    received: 1..,
                    unknown: 0,
                } => {
                    let because = format!(
                        "this machine sent none of the packets captured, but received {}",
                        counted(others.received, "packet", "packets")
                    );
                    Outcome::Against(because, vec![others.evidence()])
                }
                _ => Outcome::NotRecorded(
                    "no captured packet of IP is said to have been sent".to_owned(),
                ),
            });
        }
        let found = vec![found(case, &sent)];
        Ok(match sent.iter().all(|sent| sent.dscp == 0) {
            true => Outcome::Noted("no packet sent carries one".to_owned(), found),
            false => Outcome::For(found),
        })
    }
}

/// Packets that are not said to have been sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Others {
    received: u64,
    unknown: u64,
}

impl Others {
    fn evidence(&self) -> Evidence {
        let query = "SELECT count(*) FILTER (WHERE direction = 'receive') AS received, count(*) FILTER \
                     (WHERE direction IS NULL) AS unknown FROM packets WHERE dscp IS NOT NULL";
        let columns = [
            Column::new("received", "received", Unit::Count),
            Column::new("unknown", "not known which", Unit::Count),
        ];
        Evidence::new("Packets of IP that were not sent", query, &columns)
            .row([self.received, self.unknown].map(|count| Some(count.into())))
    }
}

/// Packets sent, by process and mark, most packets first; and how many others there are.
fn sent(case: &Case<'_>) -> Result<(Vec<Sent>, Others), StoreError> {
    let mut others = Others::default();
    let columns = [
        "direction",
        "dscp",
        "length_bytes",
        "process_id",
        "process_row",
    ];
    let table = case.table(Table::Packets)?;
    let mut sums: FxHashMap<_, (i64, i64)> = FxHashMap::default();
    for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = PacketsView::new(&batch)?;
        for row in 0..view.len() {
            let Some(dscp) = view.dscp.get(row) else {
                continue;
            };
            match view.direction.get(row) {
                Some("send") => {}
                Some("receive") => {
                    others.received += 1;
                    continue;
                }
                _ => {
                    others.unknown += 1;
                    continue;
                }
            }
            let who = (view.process_row.get(row), view.process_id.get(row));
            let (packets, bytes) = sums.entry((who.0, who.1, dscp)).or_default();
            *packets += 1;
            *bytes += i64::from(view.length_bytes[row]);
        }
    }
    let mut sent: Vec<Sent> = sums
        .into_iter()
        .map(|((process_row, process_id, dscp), (packets, bytes))| Sent {
            process_row,
            process_id,
            dscp,
            packets,
            bytes,
        })
        .collect();
    sent.sort_unstable_by_key(|sent| {
        let id = sent.process_id.map_or(i64::MAX, i64::from);
        let row = sent.process_row.map_or(i64::MAX, i64::from);
        (Reverse(sent.packets), id, row, sent.dscp)
    });
    Ok((sent, others))
}

fn found(case: &Case<'_>, sent: &[Sent]) -> Finding {
    const SHOWN: usize = 20;
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("dscp", "DSCP", Unit::None),
        Column::new("packets", "packets", Unit::Count),
        Column::new("length_bytes", "bytes", Unit::Bytes),
    ];
    let query = format!(
        "SELECT process(process_row) AS process, dscp, count(*) AS packets, sum(length_bytes) AS \
         length_bytes FROM packets WHERE direction = 'send' AND dscp IS NOT NULL GROUP BY \
         process_row, process_id, dscp ORDER BY packets DESC, process_id NULLS LAST, process_row \
         NULLS LAST, dscp LIMIT {SHOWN}"
    );
    let mut evidence = Evidence::new("Packets sent, by process and mark", query, &columns);
    for sent in sent.iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(sent.process_row).map(Into::into),
            Some(sent.dscp.into()),
            Some(sent.packets.into()),
            Some(sent.bytes.into()),
        ]);
    }
    let told = sent.iter().take(4).map(|sent| {
        let mark = match sent.dscp {
            0 => "without a mark (DSCP 0)".to_owned(),
            dscp => format!("marked with DSCP {dscp}"),
        };
        let process = case.processes(sent.process_row, sent.process_id);
        let packets = counted(sent.packets.unsigned_abs(), "packet", "packets");
        format!("{process} sent {packets} {mark}")
    });
    let sentence = format!("Of the packets captured {}.", listed(told));
    let mut finding = Finding::new(&ABOUT, Severity::Information, sentence)
        .with(evidence)
        .doubt(
            "Whether a policy asks for marks is not in the trace, and a mark may still be taken off \
             behind the place of the capture, by the adapter or the network",
        );
    if sent.iter().any(|sent| sent.dscp == 0) {
        finding = finding.remedy(
            "If a QoS policy is meant to mark these packets, it is not applied: outside a domain's \
             network it needs \"Do not use NLA\" = \"1\" (text, under Services\\Tcpip\\QoS), its values \
             are text, its application's name must be the program's, and a filter driver may take the \
             mark off.",
        );
    }
    finding
}
