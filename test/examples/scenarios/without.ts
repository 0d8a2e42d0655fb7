/** Operations without an example, by the documents that have them, and why. */
const BUCKET = 'needs a bucket to which clients may send'
const LAUNCHED = 'needs a ComfyUI server that the service started'

export const WITHOUT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'jobs-v2.openapi.json': {
    assetFromPath: 'names a file of the machine, on a service for one person',
    testProviderKey: 'asks the provider',
    ...{
      beginDirectUpload: BUCKET,
      signDirectUploadParts: BUCKET,
      completeDirectUpload: BUCKET,
      abandonDirectUpload: BUCKET,
    },
    ...{
      beginWeightUpload: LAUNCHED,
      listWeightUploads: LAUNCHED,
      getWeightUpload: LAUNCHED,
      sendWeightPart: LAUNCHED,
    },
    ...{ abandonWeightUpload: LAUNCHED, deleteWeight: LAUNCHED },
  },
}
