import { mount } from "svelte";
import "./colours.css";
import "./app.css";
import "./flame/calls.css";
import "./table/table.css";
import App from "./shell/App.svelte";
import { page } from "./view/state.svelte";

mount(App, { target: document.getElementById("page")! });
void page.start();
