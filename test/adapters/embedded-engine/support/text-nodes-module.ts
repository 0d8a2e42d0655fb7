/** The text, logic and maths classes in the form in which an engine loads further nodes. */
export { textNodes as nodes } from '../../../../src/adapters/engines/embedded/nodes/text-nodes.ts'
