"""Write what counts of the pypto package beside this file's repository root, as JSON."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).absolute().parents[3]
sys.path.insert(0, str(ROOT))

from pypto._identity.package import default_package_root, package_files, package_fingerprints  # noqa: E402

digests = {name: fingerprint.digest for name, fingerprint in package_fingerprints(default_package_root()).items()}
record = {"digests": digests, "files": package_files(default_package_root())}
Path(sys.argv[1]).write_text(json.dumps(record, sort_keys=True))
