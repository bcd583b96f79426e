// ONNX Runtime in a browser or in Node: the classes of rows, by a model that Python has exported.
// needs: onnxruntime-web
import { readFile } from "node:fs/promises"; // in a browser: fetch, and the address of the model
import * as ort from "onnxruntime-web";

const { rows, classes } = JSON.parse(await readFile("heart.json", "utf-8"));
const session = await ort.InferenceSession.create(await readFile("heart.onnx"));
const [{ name, type }] = session.inputMetadata;
const array = type === "float64" ? Float64Array : Float32Array;
const X = new ort.Tensor(type, array.from(rows.flat()), [rows.length, rows[0].length]);
const { label, probabilities } = await session.run({ [name]: X });
console.log("probabilities of the first row:", probabilities.data.slice(0, 2));
const same = classes.filter((value, i) => value === Number(label.data[i])).length;
console.log(`the same class as in Python for ${same} of ${rows.length} rows`);
if (same < 0.99 * rows.length) process.exit(1);
