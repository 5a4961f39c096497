import { mount } from "svelte";
import "../src/app.css";
import Parts from "./Parts.svelte";

if (location.search === "?dark") document.documentElement.dataset.theme = "dark";
if (location.search === "?light") document.documentElement.dataset.theme = "light";
mount(Parts, { target: document.body });
