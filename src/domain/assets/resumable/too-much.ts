/** More bytes than an upload was begun with, wherever they are noticed. */
import { ServiceError } from '../../errors.ts'

export function tooMuch(lengthBytes: number): ServiceError {
  return new ServiceError('payload_too_large', `more bytes came than the ${lengthBytes} that were announced`, {
    details: { max_bytes: lengthBytes },
  })
}
