/**
 * Python's regular expressions. Always on the pool, and stopped between steps when the run is cancelled: a pattern can take
 * longer than anybody wants to wait.
 */
import { defineNode, values } from '../../node/define-node.ts'
import { combo, int, string, truth } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { RegexError } from '../../python/regex/pattern-syntax.ts'
import { createRegex, type Regex, type RegexMatch } from '../../python/regex/regex.ts'

const ON = { advanced: true, default: true }
const OFF = { advanced: true, default: false }
const texts = { string: string({ multiline: true }), regex_pattern: string({ multiline: true }) }
const flags = { case_insensitive: truth(ON), multiline: truth(OFF), dotall: truth(OFF) }

interface PatternInputs {
  readonly regex_pattern: string
  readonly case_insensitive: boolean
  readonly multiline: boolean
  readonly dotall: boolean
}

/** null when the pattern is wrong. */
function tryRegex(inputs: PatternInputs, context: NodeContext): Regex | null {
  try {
    return toRegex(inputs, context)
  } catch (error) {
    if (error instanceof RegexError) return null
    throw error
  }
}

function toRegex({ regex_pattern, case_insensitive, multiline, dotall }: PatternInputs, context: NodeContext): Regex {
  return createRegex(regex_pattern, {
    flags: { ignoreCase: case_insensitive, multiline, dotAll: dotall, verbose: false, ascii: false },
    checkpoint: context.checkpoint,
  })
}

function firstMatch(regex: Regex, text: string): RegexMatch | null {
  const { value } = regex.matches(text).next()
  return value ?? null
}

export const regexMatch = defineNode({
  classType: 'RegexMatch',
  displayName: 'Match Text',
  category: 'text',
  description: 'Tells whether a regular expression matches somewhere in a text; false when the expression is wrong.',
  style: 'schema',
  required: { ...texts, ...flags },
  outputs: [{ type: 'BOOLEAN', name: 'matches' }],
  cost: 'compute',
  run(inputs, context) {
    const regex = tryRegex(inputs, context)
    return values(regex !== null && firstMatch(regex, inputs.string) !== null)
  },
})

const MODES = ['First Match', 'All Matches', 'First Group', 'All Groups'] as const

interface Extraction {
  readonly regex: Regex
  readonly text: string
  readonly group: number
}

function joinAll(parts: readonly (string | null)[]): string {
  const absent = parts.indexOf(null)
  if (absent === -1) return parts.join('\n')
  throw new NodeError('TypeError', `sequence item ${absent}: expected str instance, NoneType found`)
}

const EXTRACT: Readonly<Record<(typeof MODES)[number], (extraction: Extraction) => string | null>> = {
  'First Match': ({ regex, text }) => firstMatch(regex, text)?.group(0) ?? '',
  // As re.findall: the first group when there are groups, empty when it took no part.
  'All Matches': ({ regex, text }) => {
    const shown = regex.groupCount === 0 ? 0 : 1
    return joinAll(Array.from(regex.matches(text), (match) => match.group(shown) ?? ''))
  },
  'First Group': ({ regex, text, group }) => {
    const match = firstMatch(regex, text)
    return match !== null && group <= regex.groupCount ? match.group(group) : ''
  },
  'All Groups': ({ regex, text, group }) => {
    if (regex.groupCount === 0 || group > regex.groupCount) return ''
    return joinAll(Array.from(regex.matches(text), (match) => match.group(group)))
  },
}

export const regexExtract = defineNode({
  classType: 'RegexExtract',
  displayName: 'Extract Text',
  category: 'text',
  description: 'Takes what a regular expression matches out of a text: one match or all, whole or by group.',
  style: 'schema',
  required: {
    ...texts,
    mode: combo(MODES),
    ...flags,
    group_index: int({ advanced: true, default: 1, min: 0, max: 100 }),
  },
  outputs: [{ type: 'STRING' }],
  cost: 'compute',
  run(inputs, context) {
    const regex = tryRegex(inputs, context)
    if (regex === null) return values('')
    return values(EXTRACT[inputs.mode]({ regex, text: inputs.string, group: inputs.group_index }))
  },
})

export const regexReplace = defineNode({
  classType: 'RegexReplace',
  displayName: 'Replace Text (Regex)',
  category: 'text',
  description:
    'Replaces what a regular expression matches; \\1 and \\g<name> stand for groups. A count of 0 replaces all.',
  style: 'schema',
  required: { ...texts, replace: string({ multiline: true }) },
  optional: { ...flags, count: int({ advanced: true, default: 0, min: 0, max: 100 }) },
  outputs: [{ type: 'STRING' }],
  cost: 'compute',
  run({ string, regex_pattern, replace, ...optional }, context) {
    const { case_insensitive = true, multiline = false, dotall = false, count = 0 } = optional
    try {
      const regex = toRegex({ regex_pattern, case_insensitive, multiline, dotall }, context)
      return values(regex.replace(string, replace, count))
    } catch (error) {
      throw error instanceof RegexError ? new NodeError('re.error', error.message) : error
    }
  },
})
