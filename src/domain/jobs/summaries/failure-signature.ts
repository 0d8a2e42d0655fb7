/**
 * What failures of the same reason have in common: the code, the class of the node, and the message without its numbers. Of two jobs
 * that ran out of memory at another node or with another message, each has its own.
 */
import { createHash } from 'node:crypto'
import { SUMMARY_MESSAGE_LENGTH, type SummaryError } from './summary-store.ts'

/** Sizes, times, addresses and ids differ from run to run. */
const NUMBERS = /\b[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\b|\b0x[\da-f]+\b|\d+(?:[.,:]\d+)*/gi
// Summaries hold the beginning of a message: where it is cut depends on the length of its numbers, so its end does not count.
const COMPARED_LENGTH = 120
const LENGTH = 16

export function toFailureSignature({ code, classType, message }: Omit<SummaryError, 'nodeId'>): string {
  const shape = message.slice(0, SUMMARY_MESSAGE_LENGTH).replaceAll(NUMBERS, '#').slice(0, COMPARED_LENGTH)
  const text = JSON.stringify([code, classType, shape])
  return createHash('sha256').update(text).digest('hex').slice(0, LENGTH)
}
