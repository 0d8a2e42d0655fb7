/**
 * Text nodes of the dataset family. As upstream, their output value is a list of one text (not a list output), and
 * `object_info` says null where others say whether an output is a list; graphs in use rely on both.
 */
import { pythonStrip } from '../../../lib/python/text.ts'
import { defineListNode, defineNode, type EngineNode, values } from '../../node/define-node.ts'
import { withDefinition } from '../../node/dynamic-node.ts'
import { type InputKind, int, string } from '../../node/input-kinds.ts'
import { costOfTexts, refuseLongText } from '../../python/text-limit.ts'
import { pyHead, pyLower, pyReplace, pyUpper } from '../../python/text-methods.ts'

const texts = string({ multiline: false })
const emptyText = string({ default: '', multiline: false })
const outputs = [{ type: 'STRING', name: 'texts' }] as const
const NO_LIST_FLAG = { output_is_list: [null] }

type Settings = Readonly<Record<string, InputKind<unknown>>>
type ReadSettings<S extends Settings> = {
  readonly [Name in keyof S]: S[Name] extends InputKind<infer T> ? T : never
}

interface DatasetText<S extends Settings> {
  readonly classType: string
  readonly displayName: string
  readonly description: string
  readonly isDeprecated?: boolean
  readonly settings: S
  change(text: string, settings: ReadSettings<S>): string
}

function defineDatasetText<const S extends Settings>(node: DatasetText<S>): EngineNode {
  const { classType, displayName, description, isDeprecated, settings, change } = node
  const engineNode = defineNode({
    classType,
    displayName: isDeprecated ? `${displayName} (DEPRECATED)` : displayName,
    category: 'text',
    description,
    style: 'schema',
    experimental: true,
    deprecated: isDeprecated === true,
    required: { texts, ...settings },
    outputs,
    cost: costOfTexts,
    run(inputs) {
      const changed = change(inputs.texts as string, inputs as ReadSettings<S>)
      refuseLongText(changed.length)
      return values([changed])
    },
  })
  return withDefinition(engineNode, NO_LIST_FLAG)
}

export const textToLowercase = defineDatasetText({
  classType: 'TextToLowercase',
  displayName: 'Convert Text to Lowercase',
  description: 'Changes all letters to lower case.',
  isDeprecated: true,
  settings: {},
  change: pyLower,
})

export const textToUppercase = defineDatasetText({
  classType: 'TextToUppercase',
  displayName: 'Convert Text to Uppercase',
  description: 'Changes all letters to upper case.',
  isDeprecated: true,
  settings: {},
  change: pyUpper,
})

export const truncateText = defineDatasetText({
  classType: 'TruncateText',
  displayName: 'Truncate Text',
  description: 'Keeps the first characters of a text.',
  settings: { max_length: int({ default: 77, min: 1, max: 10000 }) },
  change: (text, { max_length }) => pyHead(text, max_length),
})

export const addTextPrefix = defineDatasetText({
  classType: 'AddTextPrefix',
  displayName: 'Add Text Prefix',
  description: 'Puts a text in front of another.',
  isDeprecated: true,
  settings: { prefix: emptyText },
  change: (text, { prefix }) => prefix + text,
})

export const addTextSuffix = defineDatasetText({
  classType: 'AddTextSuffix',
  displayName: 'Add Text Suffix',
  description: 'Puts a text behind another.',
  isDeprecated: true,
  settings: { suffix: emptyText },
  change: (text, { suffix }) => text + suffix,
})

export const replaceText = defineDatasetText({
  classType: 'ReplaceText',
  displayName: 'Replace Text',
  description: 'Replaces every occurrence of a text by another.',
  isDeprecated: true,
  settings: { find: emptyText, replace: emptyText },
  change: (text, { find, replace }) => pyReplace(text, find, replace),
})

export const stripWhitespace = defineDatasetText({
  classType: 'StripWhitespace',
  displayName: 'Strip Whitespace',
  description: 'Removes white space at both ends of a text.',
  isDeprecated: true,
  settings: {},
  change: pythonStrip,
})

/** The whole list as one value. */
export const mergeTextLists = withDefinition(
  defineListNode({
    classType: 'MergeTextLists',
    displayName: 'Merge Text Lists (DEPRECATED)',
    category: 'text',
    description: 'Collects several texts into one list.',
    style: 'schema',
    experimental: true,
    deprecated: true,
    required: { texts },
    outputs,
    cost: 'inline',
    run: ({ texts }) => values([[...texts]]),
  }),
  NO_LIST_FLAG,
)
