/**
 * How one model stands in for another at a second provider: what becomes of each field of the other's input, and how the
 * answer is put back into the other's form. It is data, the part `alternate` of the file of the model that stands in. A field that
 * it does not name is never left out silently: the provider then does not serve that input.
 */
import type { FieldReader } from '../catalog/field-reader.ts'
import {
  type Alternate,
  type AlternateField,
  CONVERSIONS,
  isRecord,
  type Json,
  type LeftOut,
  readModelId,
} from '../catalog/model.ts'

export function readAlternate(file: FieldReader): Alternate | null {
  if (!file.has('alternate')) return null
  const rules = file.record('alternate')
  const of = rules.text('of', { fallback: '' })
  if (of !== '' && readModelId(of) === null) rules.problem('of', 'must be the id of a model')
  const alternate: Alternate = {
    of,
    fields: rules.records('fields').map(readField),
    set: rules.object('set') ?? {},
    drop: readLeftOut(rules, 'drop', { needsReason: true }),
    ignore: readLeftOut(rules, 'ignore', { needsReason: false }),
    refuse: readLeftOut(rules, 'refuse', { needsReason: true }),
    answer: rules.value('answer') ?? null,
    answerExample: rules.object('answer_example'),
  }
  if (alternate.fields.length === 0) rules.problem('fields', 'must say what becomes of at least one field')
  if (!isRecord(alternate.answer)) rules.problem('answer', 'must be an object')
  if (alternate.answerExample === null) rules.problem('answer_example', 'must be an answer of the provider')
  rules.refuseOthers()
  return alternate
}

function readField(rule: FieldReader): AlternateField {
  const where = rule.object('where') ?? {}
  const uri = rule.has('data_uri') ? rule.record('data_uri') : null
  const read: AlternateField = {
    from: rule.path('from'),
    where: Object.entries(where).map(([path, is]) => ({ path: rule.toPath('where', path), is: toTexts(is) })),
    take: rule.has('take') ? rule.path('take') : [],
    dataUri: uri === null ? null : { type: uri.path('type'), data: uri.path('data') },
    to: rule.text('to', { fallback: '' }).split('.'),
    as: rule.has('as') ? rule.choice('as', CONVERSIONS, 'text') : null,
    values: rule.object('values'),
    join: rule.optionalText('join'),
    isList: rule.value('list') === true,
  }
  uri?.refuseOthers()
  rule.refuseOthers()
  return read
}

function readLeftOut(rules: FieldReader, name: string, { needsReason }: { readonly needsReason: boolean }): LeftOut[] {
  return rules.records(name).map((rule) => {
    const read = {
      field: rule.path('field'),
      is: rule.has('is') ? toTexts(rule.value('is') ?? []) : null,
      reason: needsReason ? rule.text('reason', { fallback: '' }) : '',
    }
    rule.refuseOthers()
    return read
  })
}

function toTexts(value: Json): string[] {
  return (Array.isArray(value) ? value : [value]).map(String)
}
