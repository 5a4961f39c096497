// Script of the report of `laglab prove diff`. It draws the comparison that the file contains.

import { mount } from "svelte";
import type { Comparison } from "../api/types";
import "../colours.css";
import "../app.css";
import "./report.css";
import { parse } from "../visible";
import Report from "./Report.svelte";

const comparison = parse(document.getElementById("data")!.textContent) as Comparison;
mount(Report, { target: document.getElementById("page")!, props: { comparison } });
