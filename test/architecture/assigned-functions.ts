/**
 * Function literals that are assigned to a property: `this.end = () => …`. The runtime takes such a function for a method that will stay, and
 * puts it among the old objects at once. Where this happens for every request, each of these functions keeps all that it can see of its request
 * until the next full garbage collection: the short collections copy it twice and take ten times as long (decision 0073).
 */
import { parseSync } from 'rolldown/utils'
import type { Source } from './sources.ts'

interface Node {
  readonly type: string
  readonly start: number
  readonly [field: string]: unknown
}

const FUNCTION = /^(Arrow)?FunctionExpression$/
const OPENS_FUNCTION = /Function|^StaticBlock$|^PropertyDefinition$/

/** Only within functions: what a module does when it is loaded happens once. */
export function findAssignedFunctions({ file, text }: Pick<Source, 'file' | 'text'>): string[] {
  const found: string[] = []
  function visit(value: unknown, isInFunction: boolean): void {
    if (Array.isArray(value)) for (const each of value) visit(each, isInFunction)
    if (!isNode(value)) return
    if (isInFunction && isAssignedFunction(value)) {
      found.push(`${file}:${text.slice(0, value.start).split('\n').length}`)
    }
    const isInside = isInFunction || OPENS_FUNCTION.test(value.type)
    for (const field of Object.values(value)) visit(field, isInside)
  }
  visit(parseSync(file, text).program, false)
  return found
}

function isAssignedFunction({ type, left, right }: Node): boolean {
  if (type !== 'AssignmentExpression' || !isNode(left) || !isNode(right)) return false
  return left.type === 'MemberExpression' && FUNCTION.test(right.type)
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}
