/** Text: cut, compared, searched, formatted, saved. */
import type { EngineNode } from '../../node/define-node.ts'
import { boundCpu } from '../../python/text-limit.ts'
import {
  addTextPrefix,
  addTextSuffix,
  mergeTextLists,
  replaceText,
  stripWhitespace,
  textToLowercase,
  textToUppercase,
  truncateText,
} from './dataset-texts.ts'
import { convertArrayToString, convertDictionaryToString, jsonExtractString } from './json-nodes.ts'
import { regexExtract, regexMatch, regexReplace } from './regex-nodes.ts'
import { saveTextNode } from './save-text.ts'
import {
  caseConverter,
  stringCompare,
  stringContains,
  stringFormat,
  stringLength,
  stringReplace,
  stringSubstring,
  stringTrim,
} from './string-nodes.ts'

const nodes: readonly EngineNode[] = [
  stringSubstring,
  stringLength,
  caseConverter,
  stringTrim,
  stringReplace,
  stringContains,
  stringCompare,
  regexMatch,
  regexExtract,
  regexReplace,
  jsonExtractString,
  stringFormat,
  convertDictionaryToString,
  convertArrayToString,
  saveTextNode,
  textToLowercase,
  textToUppercase,
  truncateText,
  addTextPrefix,
  addTextSuffix,
  replaceText,
  stripWhitespace,
  mergeTextLists,
]

export const textNodes = nodes.map(boundCpu)
