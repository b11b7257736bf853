package drivers

import "taskledger/behaviors"

// refuse returns a final failure with a code.
func refuse(code string, err error) error { return behaviors.Cancel(behaviors.Code(code, err, nil)) }
