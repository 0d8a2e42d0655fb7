/**
 * Which widgets the editor makes of an input, by its type. One input may get several: a seed also has the choice of what becomes
 * of it after a run, a picture has a button for uploads. They all take a place in the saved list of values, though not all of
 * them are part of the prompt.
 */
import { type JsonObject, type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'
import type { Widget } from './editor-graph.ts'
import type { EditorInput } from './editor-input.ts'

interface Owner {
  readonly classType: string
  readonly widgets: readonly Widget[]
}

type MakeWidgets = (input: EditorInput, owner: Owner) => Widget[]

const plain = (input: EditorInput, kind: string, value: unknown): Widget => ({
  name: input.name,
  kind,
  value: value as JsonValue,
  isSaved: true,
  isSent: true,
  input,
})

/** Saved, and no part of the prompt. */
const aside = (name: string, kind: string, value: JsonValue): Widget => ({
  name,
  kind,
  value,
  isSaved: true,
  isSent: false,
})

const button = (name: string, value: JsonValue): Widget => ({ ...aside(name, 'button', value), isSent: true })

function controlWidgets({ options, choices }: EditorInput): Widget[] {
  const { control_after_generate: given, control_prefix: prefix } = options
  const named = (word: string) =>
    typeof options[word] === 'string' ? options[word] : prefix ? `${String(prefix)} ${word}` : word
  const control = typeof given === 'string' ? given : named('control_after_generate')
  const widgets = [aside(control, 'combo', 'randomize')]
  if (choices !== null) widgets.push(aside(named('control_filter_list'), 'string', ''))
  return widgets
}

const SEEDS: ReadonlySet<string> = new Set(['seed', 'noise_seed'])

const makeInteger: MakeWidgets = (input) => {
  const { default: value = 0, control_after_generate: control = SEEDS.has(input.name) } = input.options
  const widget = { ...plain(input, 'number', value ?? 0), settle: settleInteger(input) }
  return control ? [widget, ...controlWidgets(input)] : [widget]
}

const makeFloat: MakeWidgets = (input) => {
  const widget = { ...plain(input, 'number', input.options.default ?? 0), settle: settleFloat(input) }
  return input.options.control_after_generate ? [widget, ...controlWidgets(input)] : [widget]
}

const makeText: MakeWidgets = (input) => {
  const { default: value, multiline, dynamicPrompts } = input.options
  const kind = multiline ? 'customtext' : 'text'
  return [{ ...plain(input, kind, value ?? ''), hasWildcards: dynamicPrompts === true }]
}

export function makeCombo(input: EditorInput): Widget {
  const choices = input.choices ?? []
  const { default: given, remote } = input.options
  const value = given || choices[0] || (remote ? 'Loading...' : undefined)
  return { ...plain(input, 'combo', value), choices: () => choices }
}

const makeCombos: MakeWidgets = (input) => {
  const { control_after_generate: control, remote, multi_select: isMany } = input.options
  if (isMany) return [plain(input, 'custom', []), ...(control ? controlWidgets({ ...input, choices: null }) : [])]
  const widgets = [makeCombo(input)]
  if (remote) widgets.push(aside('Auto-refresh after generation', 'toggle', false))
  if (remote && (remote as JsonObject)['refresh_button']) widgets.push(button('refresh', 'refresh'))
  if (control) widgets.push(...controlWidgets(input))
  return widgets
}

const makeBox: MakeWidgets = (input) => {
  const box = { x: 0, y: 0, width: 512, height: 512, ...(input.options.default as JsonObject | undefined) }
  const fields = Object.entries(box).slice(0, 4)
  return [plain(input, 'boundingbox', box), ...fields.map(([name, value]) => aside(name, 'number', value as JsonValue))]
}

const CURVE = {
  points: [
    [0, 0],
    [1, 1],
  ],
  interpolation: 'monotone_cubic',
}

const makeVideoEdit: MakeWidgets = (input) => {
  const features = (input.options.features ?? ['trim', 'crop']) as readonly unknown[]
  const value = {
    ...(features.includes('trim') && { trim: { start_time: 0, duration: 0 } }),
    ...(features.includes('crop') && { crop: { x: 0, y: 0, width: 0, height: 0 } }),
  }
  return [plain(input, 'videoedit', input.options.default ?? value)]
}

const VIEWPORTS: ReadonlySet<string> = new Set([
  'Preview3DAdvanced',
  'Save3DAdvanced',
  'PreviewGaussianSplat',
  'PreviewPointCloud',
  'SaveGaussianSplat',
  'SavePointCloud',
])

/** A part of the page that shows something and holds no value of its own. */
const view = (input: EditorInput, name: string): Widget => ({
  ...plain(input, 'load3D', ''),
  name,
  isFixed: true,
})

const makeModelView: MakeWidgets = (input, { classType, widgets }) => {
  const isViewport = VIEWPORTS.has(classType)
  const drawnByPage = isViewport ? 'the camera and the model as its 3D view shows them' : 'the picture of its 3D view'
  const scene = { ...view(input, isViewport ? 'viewport_state' : 'image'), drawnByPage }
  if (!widgets.some(({ name }) => name === 'model_file')) return [scene]
  return [
    button('upload 3d model', 'upload3dmodel'),
    button('upload extra resources', 'uploadExtraResources'),
    button('clear', 'clear'),
    scene,
  ]
}

const MAKERS: Readonly<Record<string, MakeWidgets>> = {
  INT: makeInteger,
  FLOAT: makeFloat,
  BOOLEAN: (input) => [plain(input, 'toggle', input.options.default ?? false)],
  STRING: makeText,
  MARKDOWN: (input) => [plain(input, 'customtext', input.options.default ?? '')],
  COMBO: makeCombos,
  IMAGEUPLOAD: ({ name }) => [aside(name, 'button', 'image')],
  COLOR: (input) => [plain(input, 'color', input.options.default ?? '#000000')],
  IMAGECOMPARE: (input) => [{ ...plain(input, 'imagecompare', ['', '']), isSaved: false }],
  BOUNDING_BOX: makeBox,
  CHART: (input) => [plain(input, 'chart', {})],
  GALLERIA: (input) => [plain(input, 'galleria', [])],
  PAINTER: (input) => [plain(input, 'painter', input.options.default ?? '')],
  COMPOSITOR: (input) => [plain(input, 'compositor', input.options.default ?? {})],
  TEXTAREA: (input) => [plain(input, 'textarea', '')],
  CURVE: (input) => [plain(input, 'curve', input.options.default ?? CURVE)],
  RANGE: (input) => [plain(input, 'range', input.options.default ?? { min: 0, max: 1 })],
  VIDEO_EDIT: makeVideoEdit,
  BOUNDING_BOXES: (input) => [plain(input, 'boundingboxes', input.options.default ?? [])],
  COLORS: (input) => [plain(input, 'colors', input.options.default ?? [])],
  AUDIO_UI: ({ name }) => [{ ...aside(name, 'audioUI', ''), isSaved: false }],
  AUDIOUPLOAD: ({ name }) => [aside(name, 'button', '')],
  AUDIO_RECORD: (input) => [
    { ...plain(input, 'audioUI', ''), isFixed: true, drawnByPage: 'the sound that it recorded' },
    aside(input.name, 'button', ''),
  ],
  WEBCAM: (input) => [{ ...plain(input, 'WEBCAM', ''), drawnByPage: 'the picture of the camera' }],
  LOAD_3D: makeModelView,
  LOAD_3D_ADVANCED: (input) => [
    { ...view(input, 'viewport_state'), drawnByPage: 'the camera and the model as its 3D view shows them' },
  ],
  PREVIEW_3D: (input) => [view(input, 'image')],
}

export function isWidgetType(type: string): boolean {
  return Object.hasOwn(MAKERS, type)
}

/** The first one stands for the input. */
export function makeWidgets(type: string, input: EditorInput, owner: Owner): Widget[] {
  return Object.hasOwn(MAKERS, type) ? MAKERS[type](input, owner) : []
}

type Settle = (value: JsonValue | undefined) => JsonValue | undefined

function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  if (typeof value === 'bigint') return Number(value)
  return value instanceof NumberText ? value.value : undefined
}

/** What JavaScript makes of a value where it needs a number. Lists and objects are none, whatever they hold. */
function coerce(value: JsonValue | undefined): number {
  const number = toNumber(value)
  if (number !== undefined) return number
  const isScalar = value === null || typeof value === 'string' || typeof value === 'boolean'
  return isScalar ? Number(value) : Number.NaN
}

/** JSON has no other numbers. */
const finite = (value: number): JsonValue => (Number.isFinite(value) ? value : null)

/** An integer beyond 2^53 stays as it is: no step or bound of a widget is worth a seed. */
const isLarge = (value: JsonValue | undefined): boolean => typeof value === 'bigint'

/** The arithmetic of number widgets, step by step as the editor does it: results must agree to the last digit. */
export function settleInteger({ options }: EditorInput): Settle {
  const step = toNumber(options.step) || 1
  const min = toNumber(options.min) ?? 0
  return (value) => {
    if (isLarge(value)) return value
    const given = coerce(value)
    if (step === 1) return finite(Math.round(given))
    const offset = min % step
    return finite(Math.round((given - offset) / step) * step + offset)
  }
}

export function settleFloat({ options }: EditorInput): Settle {
  const step = toNumber(options.step) ?? 0.5
  const precision = Math.max(0, -Math.floor(Math.log10(step)))
  const round = precision > 0 && !options.round ? 10 ** -precision : toNumber(options.round)
  const min = toNumber(options.min) ?? 0
  const max = toNumber(options.max) ?? 2048
  return (value) => {
    if (isLarge(value) || !round) return value
    const rounded = Math.round(coerce(value) / round) * round
    if (!Number.isFinite(rounded)) return finite(rounded)
    return Math.min(Math.max(Number(rounded.toFixed(Math.min(precision, 100))), min), max)
  }
}

export function clampNumber(value: JsonValue | undefined, { options }: EditorInput): JsonValue | undefined {
  if (isLarge(value)) return value
  const given = coerce(value)
  const min = toNumber(options.min)
  const max = toNumber(options.max)
  if (min !== undefined && given < min) return finite(min)
  if (max !== undefined && given > max) return finite(max)
  return value
}

/** Whether a value may differ between inputs that share one Primitive node. */
const IGNORED: ReadonlySet<string> = new Set([
  'default',
  'forceInput',
  'defaultInput',
  'control_after_generate',
  'multiline',
  'tooltip',
  'dynamicPrompts',
])

/** The numbers that two inputs both take; null when their declarations do not go together. */
export function mergeNumberInputs(one: EditorInput, other: EditorInput): EditorInput | null {
  if (one.type !== other.type || one.name !== other.name || one.isOptional !== other.isOptional) return null
  const low = Math.max(toNumber(one.options.min) ?? -Infinity, toNumber(other.options.min) ?? -Infinity)
  const high = Math.min(toNumber(one.options.max) ?? Infinity, toNumber(other.options.max) ?? Infinity)
  if (low > high) return null
  const steps = [toNumber(one.options.step) ?? 1, toNumber(other.options.step) ?? 1] as const
  const common = { min: low, max: high, step: Math.abs(steps[0] * steps[1]) / greatestCommonDivisor(...steps) }
  const merged = [
    { ...one.options, ...common },
    { ...other.options, ...common },
  ] as const
  const keys = new Set([...Object.keys(merged[0]), ...Object.keys(merged[1])].filter((key) => !IGNORED.has(key)))
  const agrees = (key: string) => {
    const [a, b] = [(merged[0] as Record<string, unknown>)[key], (merged[1] as Record<string, unknown>)[key]]
    return a === b || (a ?? null) === (b ?? null)
  }
  return [...keys].every(agrees) ? { ...one, options: { ...merged[0], ...merged[1] } } : null
}

const EPSILON = 1e-10
const MAX_ROUNDS = 100

function greatestCommonDivisor(a: number, b: number): number {
  let [x, y] = [Math.abs(a), Math.abs(b)]
  if (x === 0) return y
  if (y === 0) return x
  for (let round = 0; y > EPSILON && round < MAX_ROUNDS; round++) [x, y] = [y, x % y]
  return x
}
