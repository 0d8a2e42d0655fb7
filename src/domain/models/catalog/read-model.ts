/**
 * Reads the data file of one model. Every mistake is collected with the name of its field, so that a file can be corrected at
 * once; a file with a mistake gives no model.
 */
import { isMediaType } from '../../../../lib/files/mime.ts'
import { readAlternate } from '../alternates/read-alternate.ts'
import { readPriceRule } from '../pricing/read-price-rule.ts'
import { toChatDocument } from './chat-form.ts'
import { FieldReader } from './field-reader.ts'
import { readImageForm } from './image-form.ts'
import {
  type ChatForm,
  findOtherDefaults,
  type Hosting,
  isRecord,
  type Json,
  type JsonPath,
  MODALITIES,
  MODEL_STATES,
  type Model,
  type ModelId,
  type ModelInput,
  type ModelOutput,
  POLICY_CHARGES,
  type PriceSource,
  RETURN_MODES,
  readModelId,
} from './model.ts'

type ReadModel =
  | { readonly model: Model; readonly problems: readonly [] }
  | { readonly model: null; readonly problems: readonly string[] }

const MAX_DEADLINE_SECONDS = 24 * 60 * 60
const MAX_HOSTED_SECONDS = 7 * 24 * 60 * 60
const SECOND_MS = 1000
const DATE = /^20\d\d-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?$/

export function readModel(document: Json): ReadModel {
  const problems: string[] = []
  const file = FieldReader.open(document, '', problems)
  const id = readId(file)
  const model = readFields(file, id, document)
  file.refuseOthers()
  return problems.length === 0 ? { model, problems: [] } : { model: null, problems }
}

function readId(file: FieldReader): ModelId {
  const text = file.text('id', { fallback: '' })
  const id = readModelId(text)
  if (id === null && text !== '') file.problem('id', 'must be {provider}/{model} in lower case, such as bfl/flux-2-pro')
  return id ?? { id: text, provider: '', model: '' }
}

function readFields(file: FieldReader, id: ModelId, document: Json): Model {
  const state = file.choice('state', MODEL_STATES, 'released')
  const successor = file.optionalText('successor')
  if (successor !== null && readModelId(successor) === null) file.problem('successor', 'must be the id of a model')
  if (successor !== null && state !== 'retired') file.problem('successor', 'is for retired models only')
  const billing = file.record('billing')
  const chargesOnPolicyRejection = billing.choice('charges_on_policy_rejection', POLICY_CHARGES, 'unknown')
  billing.refuseOthers()
  const input = readInput(file.record('input'), id)
  const canRun = state === 'released' || state === 'unreleased'
  const price = readPriceRule(file.record('price'), { canRun })
  for (const other of findOtherDefaults(price, (path) => defaultIn(input.schema, path)))
    file.problem('input.schema', `says that ${other}`)
  const deadlineSeconds = file.optionalNumber('deadline_seconds', { min: 1, max: MAX_DEADLINE_SECONDS })
  return {
    ...id,
    state,
    successor,
    entitlement: file.optionalText('entitlement'),
    chargesOnPolicyRejection,
    input,
    output: readOutput(file.record('output')),
    returns: file.choice('returns', RETURN_MODES, 'direct'),
    price,
    isPriceConfirmed: readConfirmed(file),
    priceSource: readPriceSource(file),
    deadlineMs: deadlineSeconds === null ? null : deadlineSeconds * SECOND_MS,
    hosting: readHosting(file),
    adapter: file.object('adapter') ?? {},
    alternate: readAlternate(file),
    chat: readChat(file, document),
    images: readImageForm(file),
  }
}

/** The file once more, as it is for conversations: what its part `chat` says goes before what the rest says. */
function readChat(file: FieldReader, document: Json): ChatForm | null {
  if (!file.has('chat') || !isRecord(document)) return null
  const chat = file.record('chat')
  const defaultName = chat.optionalText('default_model')
  const own = { input: chat.object('input'), price: chat.object('price'), adapter: chat.object('adapter') }
  const standsInFor = readNames(chat)
  chat.refuseOthers()
  const { model, problems } = readModel(toChatDocument(document, own, { hasNames: defaultName !== null }))
  for (const problem of problems) file.problem('chat', `makes a model whose ${problem}`)
  return model === null ? null : { model, defaultName, standsInFor }
}

function readNames(chat: FieldReader): ChatForm['standsInFor'] {
  const names = Object.entries(chat.object('stands_in_for') ?? {})
  for (const [id, name] of names)
    if (readModelId(id) === null || typeof name !== 'string' || name === '')
      chat.problem(`stands_in_for.${id}`, "must be the id of a model with the provider's own name of it")
  return Object.fromEntries(names.map(([id, name]) => [id, String(name)]))
}

function readConfirmed(file: FieldReader): boolean {
  const stated = file.value('price_confirmed') ?? true
  if (typeof stated !== 'boolean') file.problem('price_confirmed', 'must be true or false')
  return stated !== false
}

function readPriceSource(file: FieldReader): PriceSource | null {
  if (!file.has('price_source')) return null
  const source = file.record('price_source')
  const read = { document: source.text('document', { fallback: '' }), date: source.text('date', { fallback: '' }) }
  if (read.document !== '' && !(read.document.startsWith('https://') && URL.canParse(read.document)))
    source.problem('document', 'must be an https address')
  if (read.date !== '' && !DATE.test(read.date))
    source.problem('date', 'must be a day or a month, such as 2026-10-07 or 2026-10')
  source.refuseOthers()
  return read
}

function readInput(input: FieldReader, id: ModelId): ModelInput {
  const modelField = input.optionalText('model_field')
  const modelName = input.optionalText('model_name') ?? id.model
  const read: ModelInput = {
    schema: input.object('schema'),
    modelField,
    modelName,
    modalities: input.choices('modalities', MODALITIES),
    example: input.object('example'),
  }
  if (modelField !== null && listsAsRequired(read.schema?.['required'], modelField)) {
    input.problem('schema', `must not require ${modelField}: the router fills it`)
  }
  input.refuseOthers()
  return read
}

/** The default that the schema states for a field. */
function defaultIn(schema: Json, path: JsonPath): unknown {
  let at: Json | undefined = schema
  for (const step of path) {
    const properties: Json | undefined = isRecord(at) ? at['properties'] : undefined
    at = typeof step === 'string' && isRecord(properties) ? properties[step] : undefined
  }
  return isRecord(at) ? at['default'] : undefined
}

function listsAsRequired(required: Json | undefined, field: string): boolean {
  return Array.isArray(required) && required.includes(field)
}

function readOutput(output: FieldReader): ModelOutput {
  const mediaType = output.optionalText('media_type')
  if (mediaType !== null && !isMediaType(mediaType)) output.problem('media_type', 'must be a media type')
  const read = { schema: output.object('schema'), mediaType, modalities: output.choices('modalities', MODALITIES) }
  output.refuseOthers()
  return read
}

function readHosting(file: FieldReader): Hosting | null {
  if (!file.has('hosting')) return null
  const hosting = file.record('hosting')
  const leaves = hosting.texts('leaves')
  for (const leaf of leaves) hosting.toPath('leaves', leaf)
  const seconds = hosting.number('lifetime_seconds', { min: 60, max: MAX_HOSTED_SECONDS, fallback: 86_400 })
  hosting.refuseOthers()
  return { leaves, lifetimeMs: seconds * SECOND_MS }
}
