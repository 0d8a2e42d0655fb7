/** What is wrong with models that stand in for others: each is tried with the example of the other, and with an answer of its own. */
import { checkTemplate, previewAnswer } from '../../../domain/models/alternates/translate-answer.ts'
import { translateInput } from '../../../domain/models/alternates/translate-input.ts'
import { findLeaves, type Model, readJsonPath } from '../../../domain/models/catalog/model.ts'
import type { CompileSchema } from '../../../domain/models/catalog/model-catalog.ts'
import type { ModelRules } from '../declarative/rules/rule-types.ts'

interface CheckAlternateDeps {
  readonly models: readonly Model[]
  readonly compileSchema: CompileSchema
}

export function checkAlternate(model: Model, deps: CheckAlternateDeps): string[] {
  return [...checkConversations(model, deps), ...checkTranslation(model, deps)]
}

/** Only models that hold conversations under one name have somebody to stand in for them. */
function checkConversations({ chat, provider }: Model, { models }: CheckAlternateDeps): string[] {
  return Object.keys(chat?.standsInFor ?? {}).flatMap((id) => {
    const native = models.find((each) => each.id === id)
    const where = `chat.stands_in_for.${id}`
    if (native?.chat == null || native.chat.defaultName !== null)
      return [`${where} is no model of this catalogue that holds conversations under one name`]
    return native.provider === provider ? [`${where} is a model of the same provider`] : []
  })
}

function checkTranslation(model: Model, { models, compileSchema }: CheckAlternateDeps): string[] {
  const { alternate } = model
  if (alternate == null) return []
  const native = models.find(({ id }) => id === alternate.of)
  if (native === undefined) return [`alternate.of ${alternate.of} is not a model of this catalogue`]
  if (native.alternate != null) return [`alternate.of ${alternate.of} stands in for another model itself`]
  if (native.provider === model.provider) return [`alternate.of ${alternate.of} is a model of the same provider`]
  const twin = models.find(
    (each) => each !== model && each.provider === model.provider && each.alternate?.of === native.id,
  )
  const problems =
    twin === undefined ? [] : [`alternate.of ${native.id} is served by ${twin.id} of the same provider, too`]
  const wrong = checkTemplate(alternate.answer).map((problem) => `alternate.answer ${problem}`)
  if (wrong.length > 0) return [...problems, ...wrong]
  return [...problems, ...checkExample(model, native, compileSchema), ...checkAnswer(model, native, compileSchema)]
}

function checkExample({ alternate, provider, input }: Model, native: Model, compileSchema: CompileSchema): string[] {
  if (alternate == null || native.input.example === null) return []
  const body = Buffer.from(JSON.stringify(native.input.example))
  const translated = translateInput(body, { alternate, provider, modelField: native.input.modelField })
  const failures =
    'body' in translated && input.schema !== null ? compileSchema(input.schema)(translated.input) : translated.failures
  return failures.map(({ loc, msg }) => `alternate: the example of ${native.id} is not served: ${loc.join('.')} ${msg}`)
}

/** The published schema of the other model holds for what comes out, and there is output where that model has it. */
function checkAnswer({ alternate }: Model, native: Model, compileSchema: CompileSchema): string[] {
  if (alternate?.answerExample == null) return []
  const answer = previewAnswer(alternate)
  const { assets = [] } = native.adapter as unknown as Partial<ModelRules>
  const hasOutput = assets.some((path) => findLeaves(answer, readJsonPath(path)).some(({ value }) => Boolean(value)))
  const problems = hasOutput
    ? []
    : [`alternate.answer puts nothing where ${native.id} has its output (${assets.join(', ')})`]
  const failures = native.output.schema === null ? [] : compileSchema(native.output.schema)(answer as never)
  return [...problems, ...failures.map(({ loc, msg }) => `alternate.answer.${loc.slice(1).join('.')} ${msg}`)]
}
