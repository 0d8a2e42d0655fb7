/** The part `images` of a model's file: how OpenAI's requests for pictures become inputs of the model, and where its answer has the pictures. */
import type { FieldReader } from './field-reader.ts'
import { type ImageFields, type ImageForm, type ImageSize, isRecord } from './model.ts'

const MAX_IMAGES = 16
const FORMS = ['data_uri', 'base64'] as const

export function readImageForm(file: FieldReader): ImageForm | null {
  if (!file.has('images')) return null
  const rules = file.record('images')
  const answer = rules.record('answer')
  const form: ImageForm = {
    prompt: rules.has('prompt') ? rules.text('prompt', { fallback: '' }) : null,
    n: rules.optionalText('n'),
    size: rules.has('size') ? readSize(rules.record('size')) : null,
    image: rules.has('image') ? readFields(rules.record('image')) : null,
    mask: rules.optionalText('mask'),
    same: rules.has('same') ? rules.texts('same') : [],
    set: rules.object('set') ?? {},
    base64: answer.has('base64') ? answer.path('base64') : null,
    url: answer.has('url') ? answer.path('url') : null,
  }
  if (form.base64 === null && form.url === null)
    rules.problem('answer', 'must say where the pictures are: base64, url or both')
  answer.refuseOthers()
  rules.refuseOthers()
  return form
}

function readSize(size: FieldReader): ImageSize {
  const field = size.optionalText('field')
  const read: ImageSize =
    field === null
      ? { kind: 'pair', width: size.text('width', { fallback: '' }), height: size.text('height', { fallback: '' }) }
      : { kind: 'word', field, values: size.object('values') }
  size.refuseOthers()
  return read
}

function readFields(image: FieldReader): ImageFields {
  const list = image.optionalText('list')
  const fields = list === null ? image.texts('fields') : [list]
  const most = list === null ? fields.length : MAX_IMAGES
  const read: ImageFields = {
    ...{ fields, isList: list !== null, as: image.choice('as', FORMS, 'data_uri') },
    max: image.number('max', { min: 1, max: MAX_IMAGES, fallback: most }),
  }
  if (fields.length === 0) image.problem('fields', 'must name a field, or list one that takes several')
  image.refuseOthers()
  return read
}

/** Whether every field that the form names is one of the model's. */
export function findUnknownFields(form: ImageForm, schema: unknown): readonly string[] {
  const properties = isRecord(schema) ? schema['properties'] : null
  if (!isRecord(properties)) return []
  const { prompt, n, size, image, mask, same, set } = form
  const ofSize = size === null ? [] : size.kind === 'pair' ? [size.width, size.height] : [size.field]
  const named = [prompt, n, mask, ...ofSize, ...(image?.fields ?? []), ...same, ...Object.keys(set)]
  return named.filter((name): name is string => name !== null && !Object.hasOwn(properties, name.split('.', 1)[0]))
}
