//! Theory: packets carry marks of quality of service (DSCP).

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{PacketsView, StoreError, Table};

use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted, listed,
};

/// Theory about DSCP marks of sent packets. Its findings are only information, because a trace does
/// not contain the policy for marks.
pub(crate) struct Marking;

static ABOUT: About = About {
    id: "packet-marking",
    name: "packet marks",
    question: "Are sent packets marked for quality of service (DSCP)?",
    tables: &[Table::Packets],
    sources: &[
        Source {
            title: "PC-Tuning: How can you verify whether a DSCP QoS policy is working?",
            url: Some("https://github.com/valleyofdoom/PC-Tuning/blob/main/docs/research.md"),
        },
        Source {
            title: "Microsoft: Manage QoS Policy",
            url: Some(
                "https://learn.microsoft.com/windows-server/networking/technologies/qos/qos-policy-manage",
            ),
        },
        Source {
            title: "Microsoft: Implement QoS in Microsoft Teams clients",
            url: Some("https://learn.microsoft.com/microsoftteams/qos-in-teams-clients"),
        },
        Source {
            title: "Microsoft: Configuring port ranges for Skype for Business clients (Do not use NLA)",
            url: Some(
                "https://learn.microsoft.com/skypeforbusiness/manage/network-management/qos/configuring-port-ranges-for-your-skype-clients",
            ),
        },
    ],
};

/// Packets that a process sent with the same mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MarkedPackets {
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
                        "this machine sent none of the captured packets, but received {}",
                        counted(others.received, "packet", "packets")
                    );
                    Outcome::Against(because, vec![others.evidence()])
                }
                _ => Outcome::NotRecorded(
                    "no captured IP packet is known to be sent by this machine".to_owned(),
                ),
            });
        }
        let findings = vec![finding(case, &sent)];
        Ok(if sent.iter().all(|sent| sent.dscp == 0) {
            Outcome::Noted("no sent packet has a mark".to_owned(), findings)
        } else {
            Outcome::For(findings)
        })
    }
}

/// Numbers of packets that were received or whose direction is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Others {
    received: u64,
    unknown: u64,
}

impl Others {
    fn evidence(&self) -> Evidence {
        let selection = Selection::new(Table::Packets).filter(Condition::IsKnown("dscp"));
        let received = Condition::is_text("direction", &["receive"]);
        let unknown = Condition::IsUnknown("direction");
        let (received, unknown) = (
            Expression::count_if(received),
            Expression::count_if(unknown),
        );
        Evidence::from_selection("IP packets that were not sent", selection)
            .column("received", "received", Unit::Count, received)
            .column("unknown", "direction unknown", Unit::Count, unknown)
            .row([self.received, self.unknown].map(|count| Some(count.into())))
    }
}

/// Reads the sent packets by process and mark, the entry with most packets first. Also counts the
/// other packets.
fn sent(case: &Case<'_>) -> Result<(Vec<MarkedPackets>, Others), StoreError> {
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
    let mut sent: Vec<MarkedPackets> = sums
        .into_iter()
        .map(
            |((process_row, process_id, dscp), (packets, bytes))| MarkedPackets {
                process_row,
                process_id,
                dscp,
                packets,
                bytes,
            },
        )
        .collect();
    sent.sort_unstable_by_key(|sent| {
        let id = sent.process_id.map_or(i64::MAX, i64::from);
        let row = sent.process_row.map_or(i64::MAX, i64::from);
        (Reverse(sent.packets), id, row, sent.dscp)
    });
    Ok((sent, others))
}

fn finding(case: &Case<'_>, sent: &[MarkedPackets]) -> Finding {
    const SHOWN: usize = 20;
    let selection = Selection::new(Table::Packets)
        .filter(Condition::is_text("direction", &["send"]))
        .filter(Condition::IsKnown("dscp"))
        .group_by(&["process_row", "process_id", "dscp"])
        .order(&[
            Order::descending("packets"),
            Order::ascending("process_id"),
            Order::ascending("process_row"),
            Order::ascending("dscp"),
        ])
        .limit(SHOWN);
    let process = Expression::Process("process_row");
    let bytes = Expression::Sum("length_bytes");
    let mut evidence = Evidence::from_selection("Packets sent, by process and mark", selection)
        .column("process", "process", Unit::None, process)
        .stored("dscp", "DSCP", Unit::None)
        .column("packets", "packets", Unit::Count, Expression::Count)
        .column("length_bytes", "bytes", Unit::Bytes, bytes);
    for sent in sent.iter().take(SHOWN) {
        evidence = evidence.row([
            case.process_label(sent.process_row).map(Into::into),
            Some(sent.dscp.into()),
            Some(sent.packets.into()),
            Some(sent.bytes.into()),
        ]);
    }
    let clauses = sent.iter().take(4).map(|sent| {
        let mark = match sent.dscp {
            0 => "without a mark (DSCP 0)".to_owned(),
            dscp => format!("marked with DSCP {dscp}"),
        };
        let process = case.processes(sent.process_row, sent.process_id);
        let packets = counted(
            sent.packets.unsigned_abs(),
            "captured packet",
            "captured packets",
        );
        format!("{process} sent {packets} {mark}")
    });
    let sentence = format!("{}.", listed(clauses));
    let named = sent.iter().take(4);
    let named = named.filter_map(|sent| case.process_subject(sent.process_row, sent.process_id));
    let mut finding = Finding::new(&ABOUT, Severity::Information, sentence)
        .subjects(named)
        .with(evidence)
        .doubt(
            "The trace does not contain the policy. The adapter or the network may remove a mark \
             after the packet was captured",
        );
    if sent.iter().any(|sent| sent.dscp == 0) {
        finding = finding.remedy(
            "If a QoS policy should mark these packets, check the policy. A client applies \
             policies of the registry only on networks of its domain, unless \"Do not use NLA\" is \
             \"1\" (text, under Services\\Tcpip\\QoS). All values of a policy are documented as \
             text. The application name in the policy must be the name of the program. A filter \
             driver may remove the mark.",
        );
    }
    finding
}
