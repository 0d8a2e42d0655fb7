/** Whether values that fit one schema fit another, as far as their words can tell: of a request what was right, of an answer what is now said. */

export interface SchemaNode {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly pattern?: string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly required?: readonly string[]
  readonly additionalProperties?: SchemaNode | boolean
  readonly items?: SchemaNode
  readonly allOf?: readonly SchemaNode[]
  readonly anyOf?: readonly SchemaNode[]
  readonly oneOf?: readonly SchemaNode[]
  readonly not?: unknown
  readonly [word: string]: unknown
}

interface Holder {
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

export interface Place {
  readonly where: string
  readonly before: Holder
  readonly after: Holder
  readonly isRequest: boolean
  /** Pairs that are being compared further out: schemas may contain themselves. */
  readonly open?: ReadonlySet<string>
}

const LEAST = ['minLength', 'minimum', 'minItems', 'minProperties', 'exclusiveMinimum']
const MOST = ['maxLength', 'maximum', 'maxItems', 'maxProperties', 'exclusiveMaximum']
/** Words about which one can only say whether they are the same. */
const SAME = ['pattern', 'not', 'multipleOf', 'uniqueItems', 'propertyNames']

export function resolveSchema(holder: Holder, schema: SchemaNode): SchemaNode {
  if (schema.$ref === undefined) return schema
  const [kind = '', name = ''] = schema.$ref.split('/').slice(-2)
  const { $ref: _, ...beside } = schema
  return { ...resolveSchema(holder, (holder.components[kind]?.[name] ?? {}) as SchemaNode), ...beside }
}

/** Members of all parts are members of the whole. */
function merge(holder: Holder, schema: SchemaNode): SchemaNode {
  const { allOf = [], ...own } = resolveSchema(holder, schema)
  const parts = [own, ...allOf.map((part) => merge(holder, part))]
  const properties = parts.flatMap((part) => (part.properties === undefined ? [] : [part.properties]))
  const required = parts.flatMap((part) => part.required ?? [])
  return {
    ...Object.assign({}, ...parts),
    ...(properties.length > 0 && { properties: Object.assign({}, ...properties) }),
    ...(required.length > 0 && { required }),
  }
}

export function compareSchemas(before: SchemaNode, after: SchemaNode, place: Place): string[] {
  const pair = `${before.$ref ?? ''} ${after.$ref ?? ''}`
  if (before.$ref !== undefined && place.open?.has(pair) === true) return []
  const inner = { ...place, open: new Set([...(place.open ?? []), pair]) }
  const [old, now] = [merge(place.before, before), merge(place.after, after)]
  return [
    ...compareTypes(old, now, inner),
    ...compareValues(old, now, inner),
    ...(place.isRequest ? compareLimits(old, now, inner) : []),
    ...compareMembers(old, now, inner),
    ...compareChoices(old, now, inner),
    ...(old.items === undefined || now.items === undefined
      ? []
      : compareSchemas(old.items, now.items, { ...inner, where: `${place.where}[]` })),
  ]
}

function typesOf({ type }: SchemaNode): string[] | null {
  if (type === undefined) return null
  const types = typeof type === 'string' ? [type] : [...type]
  return types.includes('number') ? [...types, 'integer'] : types
}

function compareTypes(before: SchemaNode, after: SchemaNode, { where, isRequest }: Place): string[] {
  const [old, now] = [typesOf(before), typesOf(after)]
  const [narrow, wide] = isRequest ? [old, now] : [now, old]
  if (wide === null) return []
  if (narrow === null) return [`${where} ${isRequest ? 'must be' : 'was'} ${wide.join(' or ')}`]
  const odd = narrow.filter((type) => !wide.includes(type))
  return odd.length === 0 ? [] : [`${where} ${isRequest ? 'may no longer be' : 'may now be'} ${odd.join(' or ')}`]
}

function compareValues(before: SchemaNode, after: SchemaNode, { where, isRequest }: Place): string[] {
  const valuesOf = ({ enum: values, const: constant }: SchemaNode) =>
    constant === undefined ? (values?.map((value) => JSON.stringify(value)) ?? null) : [JSON.stringify(constant)]
  const [old, now] = [valuesOf(before), valuesOf(after)]
  const [narrow, wide] = isRequest ? [old, now] : [now, old]
  if (wide === null) return []
  if (narrow === null) return [`${where} ${isRequest ? 'must be' : 'was always'} one of ${wide.join(', ')}`]
  const odd = narrow.filter((value) => !wide.includes(value))
  return odd.length === 0 ? [] : [`${where} ${isRequest ? 'may no longer be' : 'may now be'} ${odd.join(', ')}`]
}

function compareLimits(old: SchemaNode, now: SchemaNode, { where }: Place): string[] {
  const tighter = (word: string, isTighter: (was: number, is: number) => boolean) => {
    const [was, is] = [old[word], now[word]]
    return typeof is === 'number' && (typeof was !== 'number' || isTighter(was, is))
      ? [`${where} has a tighter ${word}`]
      : []
  }
  return [
    ...LEAST.flatMap((word) => tighter(word, (was, is) => is > was)),
    ...MOST.flatMap((word) => tighter(word, (was, is) => is < was)),
    ...SAME.filter((word) => now[word] !== undefined && JSON.stringify(now[word]) !== JSON.stringify(old[word])).map(
      (word) => `${where} has another ${word}`,
    ),
  ]
}

function compareMembers(old: SchemaNode, now: SchemaNode, place: Place): string[] {
  const { where, isRequest } = place
  const [known, given] = [old.properties ?? {}, now.properties ?? {}]
  const [needed, promised] = isRequest ? [now.required, old.required] : [old.required, now.required]
  const odd = (needed ?? []).filter((name) => promised?.includes(name) !== true)
  const isClosed = isRequest && now.additionalProperties === false && old.additionalProperties !== false
  return [
    ...odd.map((name) => `${where}.${name} ${isRequest ? 'must be given now' : 'may now be missing'}`),
    ...(isClosed && old.properties !== undefined ? [`${where} takes no other members now`] : []),
    ...Object.entries(known).flatMap(([name, schema]) => {
      const found = given[name]
      if (found === undefined) return [`${where}.${name} is gone`]
      return compareSchemas(schema, found, { ...place, where: `${where}.${name}` })
    }),
    ...(typeof old.additionalProperties === 'object' && typeof now.additionalProperties === 'object'
      ? compareSchemas(old.additionalProperties, now.additionalProperties, { ...place, where: `${where}.*` })
      : []),
  ]
}

/** Of a request every form that was right must be one of today's; of an answer every form of today one that was known. */
function compareChoices(old: SchemaNode, now: SchemaNode, place: Place): string[] {
  return (['anyOf', 'oneOf'] as const).flatMap((word) => {
    const [narrow, wide] = place.isRequest ? [old[word], now[word]] : [now[word], old[word]]
    if (wide === undefined) return []
    if (narrow === undefined) return [`${place.where} has forms now`]
    const isSame = (one: SchemaNode, other: SchemaNode) =>
      (place.isRequest ? compareSchemas(one, other, place) : compareSchemas(other, one, place)).length === 0
    const odd = narrow.filter((each) => !wide.some((other) => isSame(each, other)))
    return odd.length === 0
      ? []
      : [`${place.where}: ${odd.length} of its forms ${place.isRequest ? 'are no longer taken' : 'are new'}`]
  })
}
