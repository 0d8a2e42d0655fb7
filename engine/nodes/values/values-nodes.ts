/** Plain values: constants, truth and choices, numbers, lists. */
import type { EngineNode } from '../../node/define-node.ts'
import { boundCpu } from '../../python/text-limit.ts'
import { colorToRgbInt, numberConvert } from './conversions.ts'
import { andNode, createList, customCombo, notNode, orNode, switchNode } from './logic.ts'
import { mathExpression } from './math-expression.ts'
import { primitiveBoundingBox, seedNode } from './primitives.ts'
import { resolutionSelector } from './resolution-selector.ts'

export const valuesNodes: readonly EngineNode[] = [
  createList,
  seedNode,
  primitiveBoundingBox,
  colorToRgbInt,
  boundCpu(mathExpression),
  numberConvert,
  resolutionSelector,
  notNode,
  andNode,
  orNode,
  switchNode,
  customCombo,
]
