/** The text, logic, maths and primitive classes beyond the first few of the library. */
import type { EngineNode } from '../../node/define-node.ts'
import { andNode, notNode, orNode } from '../values/boolean-logic.ts'
import { primitiveBoundingBox } from '../values/bounding-box.ts'
import { colorToRgbInt } from '../values/color-to-rgb-int.ts'
import { createList } from '../values/create-list.ts'
import { customCombo } from '../values/custom-combo.ts'
import { mathExpression } from '../values/math-expression.ts'
import { numberConvert } from '../values/number-convert.ts'
import { resolutionSelector } from '../values/resolution-selector.ts'
import { seedNode } from '../values/seed.ts'
import { switchNode } from '../values/switch.ts'
import { caseConverter } from './case-converter.ts'
import { stringCompare, stringContains } from './comparisons.ts'
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
import { jsonExtractString } from './json-extract-string.ts'
import { regexExtract, regexMatch, regexReplace } from './regex-nodes.ts'
import { saveTextNode } from './save-text.ts'
import { stringLength, stringSubstring } from './slices.ts'
import { stringFormat } from './string-format.ts'
import { stringReplace } from './string-replace.ts'
import { stringTrim } from './string-trim.ts'
import { convertArrayToString, convertDictionaryToString } from './to-json-text.ts'

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
