/** The text, logic, maths and primitive classes beyond the first few of the library. */
import type { EngineNode } from '../../node/define-node.ts'
import { colorToRgbInt, numberConvert } from '../values/conversions.ts'
import { andNode, createList, customCombo, notNode, orNode, switchNode } from '../values/logic.ts'
import { mathExpression } from '../values/math-expression.ts'
import { primitiveBoundingBox, seedNode } from '../values/primitives.ts'
import { resolutionSelector } from '../values/resolution-selector.ts'
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

export const textNodes: readonly EngineNode[] = [
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
  createList,
  seedNode,
  primitiveBoundingBox,
  colorToRgbInt,
  mathExpression,
  numberConvert,
  resolutionSelector,
  notNode,
  andNode,
  orNode,
  switchNode,
  customCombo,
]
