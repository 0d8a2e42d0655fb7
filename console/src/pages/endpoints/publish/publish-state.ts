/** What is about to be published: the file, and what its author says of the inputs and outputs that the service proposes. In memory only. */
import { signal } from '@preact/signals'
import { type JsonValue, stringifyLosslessJson } from '../../../../../lib/json/lossless-json.ts'
import {
  type Draft,
  type EndpointInput,
  type EndpointOutput,
  getEndpoint,
  getVersion,
  previewEndpoint,
  type Version,
} from '../../../api/endpoints.ts'
import { shown } from '../../../form/input-field.tsx'

/** Everything that was typed is text; empty: as proposed. */
export interface InputRow {
  readonly source: EndpointInput
  readonly isTaken: boolean
  readonly name: string
  readonly title: string
  readonly description: string
  readonly isRequired: boolean
  readonly preset: string
  readonly minimum: string
  readonly maximum: string
  readonly maxLength: string
  readonly pattern: string
  /** One in a line. */
  readonly choices: string
}

export interface OutputRow {
  readonly source: EndpointOutput
  readonly isTaken: boolean
  readonly name: string
}

export interface Opened {
  readonly fileText: string
  readonly name: string
  /** It is a version of an endpoint that is there. */
  readonly isVersion: boolean
  readonly title: string
  readonly description: string
  readonly note: string
  /** Empty: the common workers. */
  readonly deployment: string
  readonly isReleasePinned: boolean
  readonly inputs: readonly InputRow[]
  readonly outputs: readonly OutputRow[]
  readonly candidates: readonly EndpointInput[]
  readonly warnings: Draft['warnings']
  readonly missing: Draft['missing']
}

export const opened = signal<Opened | null>(null)

export function change(part: Partial<Opened>): void {
  if (opened.value !== null) opened.value = { ...opened.value, ...part }
}

export function toRow(source: EndpointInput, isTaken: boolean, before: EndpointInput = source): InputRow {
  const isNarrowed = (own: JsonValue | undefined, now: JsonValue | undefined) => shown(own) !== shown(now)
  const bound = (own: JsonValue | undefined, now: JsonValue | undefined) => (isNarrowed(own, now) ? shown(now) : '')
  const choices = before.choices ?? []
  return {
    source,
    isTaken,
    name: before.name,
    title: before.title,
    description: before.description,
    isRequired: before.required,
    preset: shown(before.default),
    minimum: bound(source.minimum, before.minimum),
    maximum: bound(source.maximum, before.maximum),
    maxLength: bound(source.max_length, before.max_length),
    pattern: before.pattern ?? '',
    choices: isNarrowed([...(source.choices ?? [])], [...choices]) ? choices.map(shown).join('\n') : '',
  }
}

/** A saved workflow stays text, so that its numbers stay as they are; anything else goes as bytes. */
async function readFile(file: File): Promise<string> {
  const text = await file.text()
  if (/^\s*\{/.test(text)) return text
  return JSON.stringify(
    await new Promise<string>((resolve, reject) => {
      const reader = new FileReader()
      reader.onload = () => resolve(String(reader.result).replace(/^data:[^;,]*/, 'data:application/octet-stream'))
      reader.onerror = () => reject(reader.error)
      reader.readAsDataURL(file)
    }),
  )
}

/** `name`: of the endpoint that it becomes a version of. */
export async function openFile(file: File, name: string | null): Promise<void> {
  const fileText = await readFile(file)
  const draft = await previewEndpoint(fileText)
  if (name !== null) return openOver(name, fileText, draft)
  opened.value = {
    ...{ fileText, name: toName(draft.title ?? file.name.replace(/\.\w+$/, '')), isVersion: false, note: '' },
    ...{ title: draft.title ?? '', description: draft.description ?? '', deployment: '', isReleasePinned: false },
    inputs: draft.inputs.map((input) => toRow(input, true)),
    outputs: draft.outputs.map((source) => ({ source, isTaken: true, name: source.name })),
    ...{ candidates: draft.candidates, warnings: draft.warnings, missing: draft.missing },
  }
}

/** The present version, to say something else of its inputs. */
export async function openVersion(name: string): Promise<void> {
  const { current_version: current } = await getEndpoint(name)
  const { workflow = {} } = await getVersion(name, String(current))
  const fileText = stringifyLosslessJson(workflow)
  await openOver(name, fileText, await previewEndpoint(fileText))
}

async function openOver(name: string, fileText: string, draft: Draft): Promise<void> {
  const { title, description, deployment, current_version: current } = await getEndpoint(name)
  const before = await getVersion(name, String(current))
  const where = { deployment: deployment ?? '', isReleasePinned: before.release?.pinned === true }
  opened.value = {
    ...{ fileText, name, isVersion: true, title, description, note: '', ...where },
    ...carryOver(draft, before),
    ...{ warnings: draft.warnings, missing: draft.missing },
  }
}

/** What the author said of the version before holds for the same values of the new graph. Pure. */
function carryOver(draft: Draft, before: Pick<Version, 'inputs' | 'outputs'>) {
  const placeOf = ({ places: [place] }: EndpointInput) => `${place?.node_id}.${place?.input}`
  const all = new Map([...draft.candidates, ...draft.inputs].map((input) => [placeOf(input), input]))
  const kept = before.inputs.flatMap((input) => {
    const source = all.get(placeOf(input))
    return source === undefined ? [] : [toRow(source, true, input)]
  })
  const isKept = (input: EndpointInput) => kept.some(({ source }) => source === input)
  const names = new Map(before.outputs.map((output) => [output.node_id, output.name]))
  return {
    inputs: [...kept, ...draft.inputs.filter((input) => !isKept(input)).map((input) => toRow(input, false))],
    candidates: draft.candidates.filter((input) => !isKept(input)),
    outputs: draft.outputs.map((source) => ({
      ...{ source, name: names.get(source.node_id) ?? source.name },
      isTaken: names.has(source.node_id) || !draft.outputs.some((output) => names.has(output.node_id)),
    })),
  }
}

function toName(text: string): string {
  const words = text
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
  return words
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 60)
    .replace(/-+$/, '')
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?$/

/** JSON text of what was typed, as the type of the input wants it. What is no number goes as a text, and is refused by its name. */
function valueText({ type, choices = [] }: EndpointInput, typed: string): string {
  if (type === 'boolean') return typed === 'true' ? 'true' : 'false'
  const choice = choices.find((each) => shown(each) === typed)
  if (choice !== undefined) return stringifyLosslessJson(choice)
  return type !== 'text' && type !== 'file' && type !== 'choice' ? numberText(typed) : JSON.stringify(typed)
}

function numberText(typed: string): string {
  return NUMBER.test(typed.trim()) ? typed.trim() : JSON.stringify(typed)
}

/** As the service takes it, in JSON text. Pure. */
export function toDeclaration({ title, description, inputs, outputs }: Opened): string {
  const taken = inputs.filter(({ isTaken }) => isTaken).map(inputText)
  const named = outputs
    .filter(({ isTaken }) => isTaken)
    .map(({ name, source }) => JSON.stringify({ name, from: source.node_id, title: source.title, kind: source.kind }))
  const texts = JSON.stringify({ title, description, only: true }).slice(0, -1)
  return `${texts},"inputs":[${taken.join(',')}],"outputs":[${named.join(',')}]}`
}

function inputText(row: InputRow): string {
  const { source, name, title, description, isRequired } = row
  const [place] = source.places
  const from = place === undefined ? source.name : `${place.node_id}.${place.input}`
  const said: [string, string][] = []
  const add = (member: string, typed: string, write: (typed: string) => string) => {
    if (typed.trim() !== '') said.push([member, write(typed)])
  }
  add('minimum', row.minimum, numberText)
  add('maximum', row.maximum, numberText)
  add('max_length', row.maxLength, numberText)
  add('pattern', row.pattern, JSON.stringify)
  add('choices', row.choices, (typed) => {
    const lines = typed.split('\n').map((line) => line.trim())
    return `[${lines
      .filter((line) => line !== '')
      .map((line) => valueText(source, line))
      .join(',')}]`
  })
  const takesDefault = !isRequired && source.type !== 'seed' && source.type !== 'file'
  if (takesDefault) add('default', row.preset, (typed) => valueText(source, typed))
  const texts = JSON.stringify({ name, from, title, description, required: isRequired }).slice(0, -1)
  return `${texts}${said.map(([member, text]) => `,"${member}":${text}`).join('')}}`
}
