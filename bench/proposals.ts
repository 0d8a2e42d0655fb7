/**
 * Proposes an endpoint for every workflow file of a folder and says how good the proposals are:
 *
 *   node bench/proposals.ts FOLDER OBJECT_INFO [--show N] [--only NAME]
 *
 * OBJECT_INFO is the answer of a ComfyUI's /object_info, as JSON or gzipped. `--show` prints the inputs of the first N files,
 * spread over the folder.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { catalogOf, type ObjectInfo } from '../engine/graph/object-info.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from '../lib/json/lossless-json.ts'
import type { EndpointInput } from '../src/domain/endpoints/endpoint.ts'
import { fillGraph } from '../src/domain/endpoints/fill-graph.ts'
import { createPropose, type Proposal } from '../src/domain/endpoints/propose/propose.ts'
import { convertWorkflow } from '../src/domain/workflows/convert/convert-file.ts'

const { positionals, values: flags } = parseArgs({
  allowPositionals: true,
  options: { show: { type: 'string', default: '0' }, only: { type: 'string' } },
})
const [folder, infoFile] = positionals
if (folder === undefined || infoFile === undefined)
  throw new Error('say a folder of workflow files and an object_info file')

const readText = (file: string) => {
  const bytes = readFileSync(file)
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
}
const catalog = catalogOf(JSON.parse(readText(infoFile)) as ObjectInfo)
const now = new Date(2026, 0, 2, 3, 4, 5)
const random = () => 0
const propose = createPropose({ catalog: () => catalog, clock: { now: () => now }, random })

/** What classes and editors call values that nobody named. */
const BAD =
  /^(?:value|text|string|input|int|float|number|boolean|option|choice|switch|index|setting|any|in|custom_combo)(?:_?\d+)?$|^(?:string|text)_[a-c](?:_\d+)?$|^primitive_|^u_(?:int|float)\d/

const examplesOf = (inputs: readonly EndpointInput[]) =>
  Object.fromEntries(inputs.map(({ name, example }) => [name, example]))

function describe({ inputs, outputs, candidates, warnings }: Proposal): string {
  const line = (input: EndpointInput) => {
    const { name, title, type, isRequired, places, example } = input
    const where = places.map(({ nodeId, input: at }) => `${nodeId}.${at}`).join(' ')
    return `    ${isRequired ? '*' : ' '}${name} (${type}${type === 'file' ? ` ${input.kind}` : ''}) "${title}" = ${stringifyLosslessJson(example).slice(0, 50)}  <- ${where}`
  }
  const out = outputs.map(({ name, kind, nodeId }) => `${name} (${kind}, ${nodeId})`).join(', ')
  return [
    ...inputs.map(line),
    `    => ${out}`,
    `    ${candidates.length} candidates: ${candidates
      .slice(0, 8)
      .map(({ name }) => name)
      .join(', ')}`,
    ...warnings.slice(0, 3).map(({ nodeId, input, message }) => `    ! ${nodeId} ${input ?? ''}: ${message}`),
  ].join('\n')
}

const counts = {
  files: 0,
  refused: 0,
  proposed: 0,
  exact: 0,
  noInputs: 0,
  noText: 0,
  noOutput: 0,
  inputs: 0,
  badNames: 0,
  filesWithBadNames: 0,
}
const bad: string[] = []
const refusals: string[] = []
const shown: string[] = []
let slowestMs = 0
const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.json'))
  .sort()
for (const name of names) {
  if (flags.only !== undefined && !name.includes(flags.only)) continue
  const content = parseLosslessJson(readText(path.join(folder, name)))
  const file = (content as { ui?: JsonValue } | null)?.ui ?? content
  if (!Array.isArray((file as { nodes?: JsonValue } | null)?.nodes)) continue
  counts.files++
  let proposal: Proposal
  const startedMs = performance.now()
  try {
    proposal = await propose(file, null)
  } catch (error) {
    counts.refused++
    refusals.push(`${name}: ${(error as Error).message}`)
    continue
  }
  slowestMs = Math.max(slowestMs, performance.now() - startedMs)
  counts.proposed++
  const { graph, inputs, candidates, outputs } = proposal
  const { workflow } = convertWorkflow(file, { catalog, now, random })
  const filled = fillGraph(graph, [...inputs, ...candidates], examplesOf([...inputs, ...candidates]))
  if (stringifyLosslessJson(filled) === stringifyLosslessJson(workflow)) counts.exact++
  else bad.push(`${name}: its examples make another prompt`)
  counts.inputs += inputs.length
  const badNames = inputs
    .filter((input) => BAD.test(input.name))
    .map((input) => `${input.name} <- ${input.places[0].nodeId}.${input.places[0].input}`)
  counts.badNames += badNames.length
  if (badNames.length > 0) {
    counts.filesWithBadNames++
    bad.push(`${name}: ${badNames.join(', ')}`)
  }
  if (inputs.length === 0) {
    counts.noInputs++
    bad.push(`${name}: no inputs`)
  }
  if (!inputs.some(({ type }) => type === 'text')) counts.noText++
  if (outputs.length === 0) {
    counts.noOutput++
    bad.push(`${name}: no output`)
  }
  shown.push(`${name}\n${describe(proposal)}`)
}
const wanted = Number(flags.show)
const stride = Math.max(1, Math.floor(shown.length / Math.max(1, wanted)))
for (let index = 0; wanted > 0 && index < shown.length; index += stride) console.log(shown[index])
for (const line of refusals) console.log(`refused: ${line.slice(0, 300)}`)
for (const line of bad) console.log(line)
const percent = (part: number, whole: number) => `${((100 * part) / Math.max(1, whole)).toFixed(1)} %`
console.log(JSON.stringify({ ...counts, slowestMs: Math.round(slowestMs) }))
console.log(
  `proposed: ${percent(counts.proposed, counts.files)} of the files; exactly the editor's prompt: ${percent(counts.exact, counts.proposed)} of those`,
)
console.log(
  `names that say nothing: ${percent(counts.badNames, counts.inputs)} of the inputs, in ${percent(counts.filesWithBadNames, counts.proposed)} of the files`,
)
