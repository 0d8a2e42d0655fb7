/** The text, logic, maths and primitive classes beyond the first few of the library. */
import type { EngineNode } from '../define-node.ts'
import { andNode, notNode, orNode } from './logic/boolean-logic.ts'
import { createList } from './logic/create-list.ts'
import { customCombo } from './logic/custom-combo.ts'
import { switchNode } from './logic/switch.ts'
import { mathExpression } from './maths/math-expression.ts'
import { numberConvert } from './maths/number-convert.ts'
import { resolutionSelector } from './maths/resolution-selector.ts'
import { primitiveBoundingBox } from './primitives/bounding-box.ts'
import { colorToRgbInt } from './primitives/color-to-rgb-int.ts'
import { seedNode } from './primitives/seed.ts'
import { caseConverter } from './text/case-converter.ts'
import { stringCompare, stringContains } from './text/comparisons.ts'
import {
  addTextPrefix,
  addTextSuffix,
  mergeTextLists,
  replaceText,
  stripWhitespace,
  textToLowercase,
  textToUppercase,
  truncateText,
} from './text/dataset-texts.ts'
import { jsonExtractString } from './text/json-extract-string.ts'
import { regexExtract, regexMatch, regexReplace } from './text/regex.ts'
import { saveTextNode } from './text/save-text.ts'
import { stringLength, stringSubstring } from './text/slices.ts'
import { stringFormat } from './text/string-format.ts'
import { stringReplace } from './text/string-replace.ts'
import { stringTrim } from './text/string-trim.ts'
import { convertArrayToString, convertDictionaryToString } from './text/to-json-text.ts'

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
