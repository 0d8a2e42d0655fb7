/** The input that an external node declares, as the classes that take its value allow. */
import type { JsonValue } from '../../../../lib/json/lossless-json.ts'
import type { EndpointInput, Place } from '../endpoint.ts'
import type { ExternalInput } from './external-nodes.ts'
import { compareNumbers, type Declared, isInteger, isNumber, MAX_TEXT, toInput } from './input-types.ts'

/** `name` and `title` are final. */
export function toExternalInput(
  external: ExternalInput,
  declaredAt: (place: Place) => Declared | undefined,
): EndpointInput {
  const { name, title, description, places, value: example, type, hasValue } = external
  const described = { name, title, description, places, example }
  const isRequired = !hasValue
  const [first, ...others] = places.flatMap((place) => declaredAt(place) ?? [])
  const byClass = first === undefined ? null : toInput(described, [first, ...others])
  switch (type) {
    case 'text': {
      const text = String(example)
      const isMultiline = byClass?.type === 'text' ? byClass.isMultiline : true
      return {
        ...described,
        isRequired,
        type,
        default: text,
        minLength: 0,
        maxLength: Math.max(MAX_TEXT, text.length),
        pattern: null,
        isMultiline,
      }
    }
    case 'boolean':
      return { ...described, isRequired, type, default: example === true }
    case 'integer':
    case 'number':
    case 'seed':
      return { ...described, isRequired, ...toNumbers(external, byClass) }
    case 'choice':
    case 'weights': {
      const listed = type === 'choice' ? external.choices : byClass?.type === 'choice' ? byClass.choices : []
      const choices = listed.includes(example) || example === '' ? listed : [example, ...listed]
      return { ...described, isRequired, type: 'choice', default: example, choices, isOpen: type === 'weights' }
    }
    default:
      return { ...described, isRequired: true, type: 'file', kind: type, maxBytes: null, maxPixels: null }
  }
}

/** The bounds of the node, as far as the classes that take the number allow them. */
function toNumbers({ type, value, minimum, maximum }: ExternalInput, byClass: EndpointInput | null) {
  const isBounded = byClass !== null && 'minimum' in byClass
  const tighter = (own: JsonValue, other: JsonValue, sign: 1 | -1): JsonValue => {
    if (!isNumber(own)) return other
    return !isNumber(other) || compareNumbers(own, other) * sign >= 0 ? own : other
  }
  const low = tighter(minimum, isBounded ? byClass.minimum : null, 1)
  const high = tighter(maximum, isBounded ? byClass.maximum : null, -1)
  const within = {
    minimum: isNumber(low) && isNumber(value) && type !== 'seed' && compareNumbers(value, low) < 0 ? value : low,
    maximum: isNumber(high) && isNumber(value) && type !== 'seed' && compareNumbers(value, high) > 0 ? value : high,
  }
  if (type === 'seed')
    return { type, minimum: within.minimum ?? 0, maximum: within.maximum ?? Number.MAX_SAFE_INTEGER } as const
  const step = byClass !== null && 'step' in byClass ? byClass.step : null
  const isWhole = type === 'integer' && isInteger(value)
  return { type: isWhole ? 'integer' : 'number', default: value, ...within, step } as const
}
